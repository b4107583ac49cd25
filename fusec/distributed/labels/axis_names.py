"""Which dimension of the arguments each axis of a result is.

does:   takes the dimensions of parameters along the links of rows (`fusec.ops.splitting`).
needs:  a graph of known sizes, whose results are its outputs.
leaves: the graph; an axis that is none of an argument's, or of which nobody knows, has no name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from fusec.errors import user_error
from fusec.ir import Graph, Node, Value
from fusec.ops import registry
from fusec.ops.splitting import Read
from fusec.ops.splitting.library_calls import SORTS
from fusec.ops.splitting.protocol import rule_of


class Axis(NamedTuple):
    """A dimension, and at which of its positions an axis begins; None: the axis' elements are not
    in order the dimension's."""

    dimension: Hashable
    start: int | None = 0


Axes = tuple[Axis | None, ...]


def axes_of(graph: Graph, given: Mapping[Value, Axes]) -> dict[Value, Axes]:
    """The dimensions of every value's axes; ``given``: those of parameters that have some.

    Raises ``ValueError``, with the user's line, where two dimensions meet on one axis.
    """
    known = {v: given.get(v, (None,) * v.type.rank) for v in graph.inputs}
    lengths = {axis.dimension: size for v, axes in given.items()
               for axis, size in zip(axes, v.shape, strict=True) if axis is not None}
    for node in graph.nodes:
        if node.op == "Input":
            continue
        found: list[list[Axis]] = [[] for _ in range(node.types[0].rank if node.types else 0)]
        for axis, reached in _reached(node, known):
            found[axis].append(reached)
        for number, value in enumerate(node.outputs):
            known[value] = (None,) * value.type.rank if number else tuple(
                _one(node, axes) for axes in found)
        if _kind(node) == "piecewise" and node.attrs.keys() & {"axis", "starts"}:
            known[node.out()] = _of_pieces(node, known, lengths)
    return known


def _of_pieces(
    node: Node, known: Mapping[Value, Axes], lengths: Mapping[Hashable, Any]
) -> Axes:
    """The axes of what is put together: where a piece has not the dimension, positions are known
    of the whole dimension alone (`y = np.zeros_like(x); y[1:-1] = ...`)."""
    axes = range(node.types[0].rank)
    joined = {node.attrs["axis"]} if "axis" in node.attrs else {*axes}

    def one(number: int, axis: Axis | None) -> Axis | None:
        if axis is None or number not in joined or all(
                known[v][number] is not None for v in node.inputs):
            return axis
        is_whole = axis.start == 0 and lengths[axis.dimension] == node.types[0].shape[number]
        return axis if is_whole else axis._replace(start=None)

    return tuple(map(one, axes, known[node.out()]))


def _reached(node: Node, known: Mapping[Value, Axes]) -> Iterator[tuple[int, Axis]]:
    """The axes of a node's result that dimensions of operands go along."""
    rule = rule_of(node)
    for number, operand in enumerate(node.inputs if rule is not None else ()):
        assert rule is not None
        links = rule.links(node, number)
        for axis, (read, named) in enumerate(zip(links, known[operand], strict=True)):
            if named is None:
                continue
            if read is None:
                read, named = _along(node, number, axis, named)
            if read is not None:
                at = named.start
                yield read.axis, named._replace(start=None if at is None else at + read.start)


def _along(node: Node, number: int, axis: int, named: Axis) -> tuple[Read | None, Axis]:
    """Where an axis goes that is read as a whole: it stays in scans, sorts, and slices with a step;
    one of length 1 does where it is not spread.
    """
    if len(node.types) == 1 and (_kind(node) == "elementwise" or node.op == "BroadcastTo"):
        at = axis + node.types[0].rank - node.inputs[number].type.rank
        return (Read(at) if node.types[0].shape[at] == 1 else None), named
    same = len(node.types) == 1 and node.types[0].rank == node.inputs[0].type.rank
    if same and node.op == "Scan":
        return Read(axis), named
    if same and (node.op == "Slice" or node.op in SORTS):
        return Read(axis), named._replace(start=None)
    return None, named


def _kind(node: Node) -> str:
    return registry.get(node.op).kind


def _one(node: Node, axes: list[Axis]) -> Axis | None:
    names = dict.fromkeys(axis.dimension for axis in axes)
    if len(names) > 1:
        one, other = [*names][:2]
        raise user_error(
            ValueError, f"the dimensions {one!r} and {other!r} meet on one axis", node.loc,
            "arrays meet by position: x.transpose(...) puts dimensions in order, and "
            "x.expand_dims(...) adds them",
            values=[(f"operand {k}", str(v.type)) for k, v in enumerate(node.inputs)])
    starts = {axis.start for axis in axes}
    return Axis(axes[0].dimension, starts.pop() if len(starts) == 1 else None) if axes else None


__all__ = ["Axes", "Axis", "axes_of"]
