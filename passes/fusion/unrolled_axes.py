"""Which roots of kernels are computed part by part: their last axis is in registers.

An array of points, a short last axis of coordinates, is often made of numbers per point: a norm, a
weight.  With the coordinates as a loop these are computed for each of them, or go through memory;
as parts, one for each coordinate, they are computed once and never leave the registers.
"""

from __future__ import annotations

from fusec.ir import Graph, Value
from fusec.ops import get
from fusec.ops.regions.cones import cone, cone_cost, is_always_stored, written_cost

from ..rules.short_axes import MAX_COST, MAX_SHORT
from .materialise import BROADCAST_LIMIT
from .narrow_sums import narrow_axes


def unrolled_axes(graph: Graph, required: set[Value]) -> dict[Value, int]:
    """The short axis, of the iteration domain, of each root that is better computed in parts."""
    needed = required | {n.out() for n in graph.nodes if is_always_stored(n)}
    reductions = {n.out() for n in graph.nodes if get(n.op).kind == "reduce"}
    unrolled = {root: axis for root in needed | reductions
                if (axis := _short_axis(root)) is not None and _shares_work(root, axis, needed)}
    return narrow_axes(needed, reductions, unrolled)


def _short_axis(root: Value) -> int | None:
    """The last axis of the root's domain, where it is short and kept."""
    kind = get(root.node.op).kind
    if kind not in ("elementwise", "reduce") or root.node.op.startswith("Arg"):
        return None
    domain = root.node.inputs[0].shape if kind == "reduce" else root.shape
    axis = len(domain) - 1
    if any(type(n) is int and n == 0 for n in domain):  # nothing is done, so nothing is asked
        return None
    if axis < 1 or (kind == "reduce" and axis in root.node.attrs["axes"]):
        return None
    return axis if isinstance(domain[axis], int) and 2 <= domain[axis] <= MAX_SHORT else None


def _shares_work(root: Value, axis: int, stored: set[Value]) -> bool:
    """Whether the parts have enough in common, and are not too much code."""
    reach = cone(root, stored)
    if reach.piecewise:
        return False
    shared = [value for value, maps in reach.inlined.items() if any(
        axis not in {loop for i in index for loop in i.loops} for index in maps)]
    return any(_is_work(value, stored) for value in shared) and (
        written_cost(root, 2 * MAX_COST, axis) < 2 * MAX_COST)


def _is_work(value: Value, stored: set[Value]) -> bool:
    return value.node.op == "Fold" or (
        cone_cost(value, stored, BROADCAST_LIMIT + 1) > BROADCAST_LIMIT)
