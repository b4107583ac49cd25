"""Nodes that may raise though nobody reads them: NumPy raises ``IndexError`` for ``x[k]`` whatever
becomes of the element, and ``LinAlgError`` for a matrix whose inverse is not used.

The checks that ops of indices make themselves become nodes of their own; library calls are kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Graph, Loc, Node, Value
from fusec.ir.lazy_values import asked_once
from fusec.ir.sizes.dims import Dim, Size, symbols_of
from fusec.ir.sizes.symbolic_numbers import applied

from ..build import Builder
from ..registry import get
from ..rows.picking import PICKS, picked_axes
from ..rows.sizes import size_value
from .checks import has_effects


@dataclass(frozen=True)
class IndexUse:
    """An index of an axis, and its length as a number of the graph.

    ``checked`` is the checked index where an op of its own checks it (`CheckIndex`).  ``state``:
    the program's assignments by then, of a use in no branch or loop (``is_outermost``).
    """

    index: Value
    size: Size
    axis: int
    loc: Loc | None
    limit: Value
    checked: Value | None = None
    is_outermost: bool = False
    state: Any = None


Use = IndexUse | Node  # a node: a library call, or a branch or loop that has such uses


def uses_indices(node: Node) -> bool:
    """Whether the node, which has no effects, raises where an index is out of range."""
    if node.op in PICKS:
        return not node.attrs.get("unchecked") and bool(unsafe_axes(node))
    if node.op == "CheckIndex":
        return not _is_settled(*node.inputs)
    return get(node.op).is_control and not has_effects(node) and any(
        map(_has_uses, node.graphs))


def _is_settled(index: Value, limit: Value) -> bool:
    """Whether both are constants, and the index is in range."""
    if index.node.op != "Const" or limit.node.op != "Const":
        return False
    number, size = (v.node.attrs["value"] for v in (index, limit))
    return isinstance(size, int | np.integer) and -size <= number < size


@asked_once
def _has_uses(graph: Graph) -> bool:
    """Whether a node of the graph does: asked at every level of nested branches and loops."""
    return any(map(uses_indices, graph.nodes))


def may_raise_unread(node: Node) -> bool:
    """Whether the node, which has no effects, raises whatever becomes of its results."""
    row = get(node.op)
    if row.is_control or row.kind == "call":
        return not has_effects(node) and any(map(_has_such, node.graphs))
    return may_refuse(node) or uses_indices(node)


def may_refuse(node: Node) -> bool:
    """Whether it is a library's function, which refuses some operands, or chooses among elements of
    which there may be none."""
    refused = _refused(node.op)
    return bool(refused) and (refused == "some operands" or bool(symbols_of(node.inputs[0].shape)))


@cache
def _refused(op: str) -> Literal["", "some operands", "no elements"]:
    row = get(op)
    if row.chooses:
        return "no elements"
    is_call = row.lowering == "library" and row.raises != "never" and not (
        row.stateful or row.picks or row.is_transfer)
    return "some operands" if is_call else ""


@asked_once
def _has_such(graph: Graph) -> bool:
    return any(map(may_raise_unread, graph.nodes))


def kept(builder: Builder, node: Node) -> Node:
    """The node that keeps a call, branch or loop of unread results for its exceptions."""
    if get(node.op).is_control:
        return only_checks(builder, node)
    builder.loc = node.loc
    return builder.emit("Ran", node.out()).node


def unsafe_axes(node: Node) -> list[tuple[int, Value]]:
    """The axes of a `Pick` or `PickUpdate` whose index may be out of range, with the index."""
    return [(axis, index) for axis, index in picked_axes(node)
            if axis not in node.attrs["safe"] and (
                index.node.op != "Const" or isinstance(node.inputs[0].shape[axis], Dim))]


def bounds_check(builder: Builder, index: Value, limit: Value, axis: int, loc: Loc | None) -> Node:
    """The check of one index."""
    builder.loc = loc
    return builder.emit("BoundsCheck", index, limit, axis=axis).node


def index_checks(builder: Builder, node: Node) -> list[Node]:
    """The checks that the node makes: of a branch or loop, one that does nothing else."""
    if not uses_indices(node):
        return []
    if get(node.op).is_control:
        return [only_checks(builder, node)]
    if node.op == "CheckIndex":
        index, limit = node.inputs
        return [bounds_check(builder, index, limit, node.attrs["axis"], node.loc)]
    return [bounds_check(builder, index, length(builder, node.inputs[0], axis), axis, node.loc)
            for axis, index in unsafe_axes(node)]


def only_checks(builder: Builder, node: Node) -> Node:
    """A branch or loop whose results nobody needs, for the checks in it."""
    attrs: dict[str, Any] = {
        key: _checked_graph(builder, value) if isinstance(value, Graph) and key != "test" else value
        for key, value in node.attrs.items()}
    builder.loc = node.loc
    return builder.emit(node.op, *node.inputs, **attrs).node


def length(builder: Builder, array: Value, axis: int) -> Value:
    """The size of an axis as a number of the graph."""
    size = array.shape[axis]
    if isinstance(size, Dim):
        return size_value(builder, size, [array])
    return builder.const(applied(np.int64, size))


def _checked_graph(builder: Builder, graph: Graph) -> Graph:
    checks = [check for node in graph.nodes for check in _checks_in(builder, node)]
    effects = [node for node in graph.nodes if has_effects(node)]
    return Graph.build(graph.inputs, graph.outputs, graph.updates, graph.name,
                       [*effects, *checks])


def _checks_in(builder: Builder, node: Node) -> list[Node]:
    if may_raise_unread(node) and not uses_indices(node):
        return [kept(builder, node)]
    return index_checks(builder, node)


__all__ = [
    "bounds_check", "index_checks", "kept", "may_raise_unread", "may_refuse", "unsafe_axes",
    "uses_indices",
]
