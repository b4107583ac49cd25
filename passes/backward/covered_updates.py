"""Updates of an array that together overwrite all of it: its old value need not be computed.  And
those that write back the elements that are there.

``u = f(u); u[1:-1] = g; u[0] = u[-1] = 0`` has no use for ``f(u)``, and the backward pass of
stencils, which replaces cotangents of a border and of the inside in turn, is full of this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.ir import Node, Value
from fusec.ir.regions import are_apart, are_plain, region_of
from fusec.ir.sizes.dims import is_static
from fusec.ops import get

from ..rewrite import Rewriter

LONGEST = 8  # updates of one array that are looked at
LARGEST = 4096  # parts that borders of regions cut an array into


def without_covered(node: Node, rewriter: Rewriter) -> Value | None:
    """The update, on zeros in the place of a computed array of which nothing is left."""
    updates = _updates(node)
    base = updates[-1].inputs[0]
    if len(updates) < 2 or get(base.node.op).kind != "elementwise" or not _cover(
            base.shape, updates):
        return None
    result = rewriter.emit(
        "BroadcastTo", rewriter.const(base.dtype.type(0)), shape=base.shape)
    for update in reversed(updates):
        result = rewriter.emit("SliceUpdate", result, update.inputs[1], **update.attrs)
    return result


def put_back(node: Node) -> Value | None:
    """The updated array, where the part that is written was read of it, or of a version of it
    before updates elsewhere."""
    array, part = node.inputs
    if part.node.op != "Slice" or region_of(part.node) != region_of(node):
        return None
    before, source = array, part.node.inputs[0]
    while before != source:
        update = before.node
        if update.op != "SliceUpdate" or not are_apart(region_of(node), region_of(update)):
            return None
        before = update.inputs[0]
    return array


def _updates(node: Node) -> list[Node]:
    """The update and those before it, the first of them last."""
    updates = [node]
    while updates[-1].inputs[0].node.op == "SliceUpdate" and len(updates) < LONGEST:
        updates.append(updates[-1].inputs[0].node)
    return updates


def _cover(shape: Sequence[int], updates: Sequence[Node]) -> bool:
    """Whether the regions of updates have every element of the shape between them."""
    written = [region_of(u) for u in updates]
    if not is_static(shape) or not are_plain(*written):
        return False
    regions = [tuple(r.axes) for r in written]
    borders = [sorted({0, size, *(p for r in regions for p in (r[axis][0], sum(r[axis][::2])))})
               for axis, size in enumerate(shape)]
    counts = [len(b) - 1 for b in borders]
    if np.prod(counts, dtype=np.int64) > LARGEST:
        return False
    left = np.ones(counts, bool)
    for region in regions:
        left[tuple(slice(b.index(start), b.index(start + size)) for b, (start, _, size) in zip(
            borders, region, strict=True))] = False
    return not left.any()


__all__ = ["put_back", "without_covered"]
