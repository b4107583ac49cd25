"""Which dimension of the arguments each axis of a result is.

does:   takes the dimensions of parameters along the links of rows (`fusec.ops.splitting`).
needs:  a graph of known sizes, whose results are its outputs.
leaves: the graph; an axis that is none of an argument's, or of which nobody knows, has no name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fusec.errors import user_error
from fusec.ir import Graph, Node, Value
from fusec.ops.splitting import Read
from fusec.ops.splitting.protocol import rule_of
from fusec.ops.splitting.rules import SORTS


class Axis(NamedTuple):
    """A dimension, and at which of its positions an axis begins; None: the axis' elements are not
    in order the dimension's."""

    dimension: str
    start: int | None = 0


Axes = tuple[Axis | None, ...]


def axes_of(graph: Graph, given: Mapping[Value, Axes]) -> dict[Value, Axes]:
    """The dimensions of every value's axes; ``given``: those of parameters that have some.

    Raises ``ValueError``, with the user's line, where two dimensions meet on one axis.
    """
    known = {v: given.get(v, (None,) * v.type.rank) for v in graph.inputs}
    for node in graph.nodes:
        if node.op == "Input":
            continue
        found: list[list[Axis]] = [[] for _ in range(node.types[0].rank if node.types else 0)]
        for axis, reached in _reached(node, known):
            found[axis].append(reached)
        for number, value in enumerate(node.outputs):
            known[value] = (None,) * value.type.rank if number else tuple(
                _one(node, axes) for axes in found)
    return known


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
                read, named = _along(node, axis, named)
            if read is not None:
                at = named.start
                yield read.axis, named._replace(start=None if at is None else at + read.start)


def _along(node: Node, axis: int, named: Axis) -> tuple[Read | None, Axis]:
    """Where an axis goes that is read as a whole: it stays in scans, sorts, and slices with a step.
    """
    same = len(node.types) == 1 and node.types[0].rank == node.inputs[0].type.rank
    if same and node.op == "Scan":
        return Read(axis), named
    if same and (node.op == "Slice" or node.op in SORTS):
        return Read(axis), named._replace(start=None)
    return None, named


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
