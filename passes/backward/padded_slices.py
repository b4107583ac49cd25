"""Slices of elementwise results of padded arrays: computed of the parts that they read.

does:   a `Slice` of elementwise results, where it reads one piece of an updated array among the
        operands (all of the written part, or none of it), becomes the same results of slices.
needs:  products contracted: a part has to have the bits of the whole.
leaves: slices of updated arrays, which `simplify` turns into slices of their pieces.

The cotangent of an array that stencils read is a sum of padded ones.  A kernel cuts its domain
where an operand is padded, so that reductions cannot read such a sum unless it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.ir import Graph, Node, Value
from fusec.ir.regions import are_apart, is_inside, region_of
from fusec.ops import get
from fusec.ops.calls.checks import may_raise

from ..rewrite import Replacement, Rewriter, rewrite

MOST = 24  # results that a slice is pulled through


def padded_slices(graph: Graph) -> Graph:
    """The graph with slices of sums of padded arrays as sums of slices; itself without any."""
    if "SliceUpdate" not in graph.ops:
        return graph
    return rewrite(graph, _pulled, ops=("Slice",))


def _pulled(node: Node, rewriter: Rewriter) -> Replacement:
    if node.inputs[0].node.op == "SliceUpdate" or any(step != 1 for step in node.attrs["steps"]):
        return None
    inside: dict[Value, bool] = {}
    if not _gains(node.inputs[0], node, inside) or len(inside) > MOST:
        return None
    made: dict[Value, Value] = {}
    return [_part(node.inputs[0], node, inside, made, rewriter)]


def _gains(value: Value, node: Node, inside: dict[Value, bool]) -> bool:
    """Whether the value is computed of padded arrays of which the slice reads one piece;
    ``inside`` says so of each value that was asked about."""
    inner = value.node
    if value in inside or len(inside) > MOST:
        return inside.get(value, False)
    inside[value] = False
    if inner.op == "SliceUpdate":
        inside[value] = _reads_one_piece(node, inner)
    elif get(inner.op).kind == "elementwise" and not may_raise(inner):
        found = [_gains(v, node, inside) for v in inner.inputs if v.shape == value.shape]
        inside[value] = any(found)
    return inside[value]


def _reads_one_piece(node: Node, update: Node) -> bool:
    part, other = region_of(node), region_of(update)
    return is_inside(part, other) or are_apart(part, other)


def _part(
    value: Value, node: Node, inside: dict[Value, bool], made: dict[Value, Value],
    rewriter: Rewriter,
) -> Value:
    """The part of the value that the slice reads."""
    if value not in made:
        inner = value.node
        if inside.get(value) and inner.op != "SliceUpdate":
            made[value] = rewriter.emit(inner.op, *(
                _operand(v, value, node, inside, made, rewriter) for v in inner.inputs),
                **inner.attrs)
        else:
            made[value] = rewriter.emit("Slice", value, **node.attrs)
    return made[value]


def _operand(
    operand: Value, result: Value, node: Node, inside: dict[Value, bool],
    made: dict[Value, Value], rewriter: Rewriter,
) -> Value:
    """The part of an operand, which may be spread over the result's shape."""
    if operand.shape == result.shape:
        return _part(operand, node, inside, made, rewriter)
    lead = len(result.shape) - len(operand.shape)
    cut = [size == 1 != whole for size, whole in zip(
        operand.shape, result.shape[lead:], strict=True)]
    if all(cut):
        return operand

    def of_axes(name: str, single: int) -> Sequence[int]:
        return tuple(single if one else given for one, given in zip(
            cut, node.attrs[name][lead:], strict=True))

    return rewriter.emit("Slice", operand, starts=of_axes("starts", 0), steps=of_axes("steps", 1),
                         sizes=of_axes("sizes", 1))


__all__ = ["padded_slices"]
