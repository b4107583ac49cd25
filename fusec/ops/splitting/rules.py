"""The rules, subject by subject."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from fusec.ir import Node, TensorType, Value

from .. import registry
from ..formulas import FORMULAS
from .protocol import BlockSite, Box, Interval, Links, Read, SplitRule, declare, linked, sizes_of


def _again(site: BlockSite) -> Value:
    """The same node of the operands' boxes."""
    return site.emit(site.node.op, *_operands(site), **site.node.attrs)


def _operands(site: BlockSite) -> Iterator[Value]:
    return (site.operand(k) for k in range(len(site.node.inputs)))


# ------------------------------------------------------------------------------------ elementwise


def _aligned(node: Node, number: int) -> Links:
    """Trailing axes align, axes of length 1 are read at 0."""
    shape = node.inputs[number].shape
    before = len(node.types[0].shape) - len(shape)
    return tuple(None if size == 1 else Read(axis + before) for axis, size in enumerate(shape))


def _broadcast(site: BlockSite) -> Value:
    return site.emit("BroadcastTo", site.operand(0), shape=sizes_of(site.box))


declare(SplitRule(_aligned, _again), *(
    row.name for row in registry.all_ops() if row.kind == "elementwise"))
declare(SplitRule(_aligned, _again), *(name for name, _ in FORMULAS.values()))
declare(SplitRule(_aligned, _broadcast), "BroadcastTo")


# ------------------------------------------------------------------------------------------ views


def _slice_links(node: Node, number: int) -> Links:
    return tuple(Read(axis, start) if step == 1 else None for axis, (start, step) in enumerate(
        zip(node.attrs["starts"], node.attrs["steps"], strict=True)))


def _span(start: int, step: int, interval: Interval) -> Interval:
    """The positions that a slice reads for an interval of its result."""
    first, last = start + step * interval[0], start + step * (interval[1] - 1)
    if interval[1] <= interval[0]:
        return max(first, 0), max(first, 0)
    return min(first, last), max(first, last) + 1


def _slice_box(node: Node, number: int, box: Box) -> Box:
    attrs = node.attrs
    return tuple(map(_span, attrs["starts"], attrs["steps"], box))


def _slice(site: BlockSite) -> Value:
    steps, inner = site.node.attrs["steps"], site.box_of(0)
    if all(step == 1 for step in steps):
        return site.operand(0)
    starts = tuple(0 if step > 0 else stop - start - 1
                   for step, (start, stop) in zip(steps, inner, strict=True))
    return site.emit("Slice", site.operand(0), starts=starts, steps=steps,
                     sizes=sizes_of(site.box))


def _transpose_links(node: Node, number: int) -> Links:
    perm = node.attrs["perm"]
    return tuple(Read(perm.index(axis)) for axis in range(len(perm)))


def _expanded_links(node: Node, number: int) -> Links:
    kept = (axis for axis in range(node.types[0].rank) if axis not in node.attrs["axes"])
    return tuple(map(Read, kept))


def _squeezed_links(node: Node, number: int) -> Links:
    kept = itertools.count()
    return tuple(None if axis in node.attrs["axes"] else Read(next(kept))
                 for axis in range(node.inputs[0].type.rank))


def _reshape_links(node: Node, number: int) -> Links:
    """Axes that keep their place: as many elements before them, and their length."""
    before, after = node.inputs[0].shape, node.types[0].shape
    starts = {(math.prod(after[:axis]), size): axis for axis, size in enumerate(after) if size > 1}
    found = (starts.get((math.prod(before[:axis]), size)) for axis, size in enumerate(before))
    return tuple(None if axis is None else Read(axis) for axis in found)


def _reshape(site: BlockSite) -> Value:
    """Axes that do not keep their place are made whole; then the part of them that is wanted."""
    shape = site.node.types[0].shape
    kept = {read.axis for read in _reshape_links(site.node, 0) if read is not None}
    own = tuple(part if axis in kept else (0, int(size))
                for axis, (part, size) in enumerate(zip(site.box, shape, strict=True)))
    whole = site.emit("Reshape", site.operand(0), shape=sizes_of(own))
    if own == site.box:
        return whole
    return site.emit("Slice", whole, steps=(1,) * len(own), sizes=sizes_of(site.box), starts=tuple(
        a[0] - b[0] for a, b in zip(site.box, own, strict=True)))


def _reshape_box(node: Node, number: int, box: Box) -> Box:
    """Axes that are merged or divided are read whole."""
    return linked(_reshape_links(node, number), node.inputs[0].shape, box)


declare(SplitRule(_slice_links, _slice, _slice_box), "Slice")
declare(SplitRule(lambda node, number: tuple(map(Read, range(node.types[0].rank))),
                  lambda site: site.operand(0)), "Fence")
declare(SplitRule(_transpose_links, _again), "Transpose")
declare(SplitRule(_expanded_links, _again), "ExpandDims")
declare(SplitRule(_squeezed_links, _again), "Squeeze")
declare(SplitRule(_reshape_links, _reshape, _reshape_box), "Reshape")


# ----------------------------------------------------------------------------------------- pieces


def _meet(one: Interval, other: Interval) -> Interval:
    return max(one[0], other[0]), max(min(one[1], other[1]), max(one[0], other[0]))


def _is_empty(box: Box) -> bool:
    return any(stop <= start for start, stop in box)


def _shifted(box: Box, by: tuple[int, ...]) -> Box:
    return tuple((start - n, stop - n) for (start, stop), n in zip(box, by, strict=True))


def _update_links(node: Node, number: int) -> Links:
    starts = node.attrs["starts"] if number else [0] * node.types[0].rank
    return tuple(Read(axis, -start) for axis, start in enumerate(starts))


def _update_box(node: Node, number: int, box: Box) -> Box | None:
    if number == 0:
        return box
    starts, sizes = node.attrs["starts"], node.attrs["sizes"]
    inside = tuple(_meet(part, (start, start + size))
                   for part, start, size in zip(box, starts, sizes, strict=True))
    return None if _is_empty(inside) else _shifted(inside, starts)


def _update(site: BlockSite) -> Value:
    inner, starts = _update_box(site.node, 1, site.box), site.node.attrs["starts"]
    if inner is None:
        return site.operand(0)
    if sizes_of(inner) == sizes_of(site.box):
        return site.operand(1)
    here = tuple(first + start - begin for (first, _), start, (begin, _) in zip(
        inner, starts, site.box, strict=True))
    return site.emit("SliceUpdate", site.operand(0), site.operand(1), starts=here,
                     steps=(1,) * len(here), sizes=sizes_of(inner))


def _piece_start(node: Node, number: int) -> int:
    axis = node.attrs["axis"]
    return sum(int(v.shape[axis]) for v in node.inputs[:number])


def _concat_links(node: Node, number: int) -> Links:
    start = _piece_start(node, number)
    return tuple(Read(axis, -start if axis == node.attrs["axis"] else 0)
                 for axis in range(node.types[0].rank))


def _concat_box(node: Node, number: int, box: Box) -> Box | None:
    axis, start = node.attrs["axis"], _piece_start(node, number)
    size = int(node.inputs[number].shape[axis])
    first, stop = _meet(box[axis], (start, start + size))
    if stop <= first:
        return None
    return (*box[:axis], (first - start, stop - start), *box[axis + 1:])


def _concat(site: BlockSite) -> Value:
    parts = [site.operand(k) for k in range(len(site.node.inputs))
             if _concat_box(site.node, k, site.box) is not None]
    return parts[0] if len(parts) == 1 else site.emit(
        "Concat", *parts, axis=site.node.attrs["axis"])


declare(SplitRule(_update_links, _update, _update_box, keeps=lambda node: all(
    step == 1 for step in node.attrs["steps"])), "SliceUpdate")
declare(SplitRule(_concat_links, _concat, _concat_box), "Concat")


# ------------------------------------------------------------------------------ reductions, scans


def _kept_links(node: Node, number: int) -> Links:
    kept = itertools.count()
    return tuple(None if axis in node.attrs["axes"] else Read(next(kept))
                 for axis in range(node.inputs[0].type.rank))


def is_rounded_sum(node: Node) -> bool:
    """Whether it reduces floats, and the order decides its last bits."""
    return node.op in ("Sum", "Prod", *COMPOSED) and node.types[0].dtype.kind in "fc"


def _scanned_whole(node: Node) -> tuple[int, ...]:
    """The axes of which each element needs those before; none of a scan that begins anew in each
    block (`fusec.passes.split.scan_cuts`)."""
    return () if node.attrs.get("is_by_block") else tuple(node.attrs["axes"])


def _scan_links(node: Node, number: int) -> Links:
    whole = _scanned_whole(node)
    return tuple(None if axis in whole else Read(axis)
                 for axis in range(node.inputs[0].type.rank))


def _scan(site: BlockSite) -> Value:
    attrs = {k: v for k, v in site.node.attrs.items() if k != "is_by_block"}
    return site.emit("Scan", site.operand(0), **attrs)


REDUCTIONS = tuple(row.name for row in registry.all_ops() if row.kind == "reduce")
COMPOSED = ("Mean", "Var", "Std")
declare(SplitRule(_kept_links, _again), *REDUCTIONS, *COMPOSED)
declare(SplitRule(_scan_links, _scan, whole=_scanned_whole), "Scan")


# --------------------------------------------------------------------------------------- products


def product_axes(node: Node) -> tuple[int, int]:
    """The axes of the operands of a ``MatMul`` that are summed over."""
    a, b = node.inputs
    return a.type.rank - 1, b.type.rank - 2 if b.type.rank > 1 else 0


def _product_links(node: Node, number: int) -> Links:
    a, b = node.inputs
    rows, columns = a.type.rank > 1, b.type.rank > 1
    rank, summed = node.types[0].rank, product_axes(node)[number]
    stack = rank - rows - columns  # leading axes, which broadcast
    operand = node.inputs[number]
    own = operand.type.rank - 2 if operand.type.rank > 1 else 0

    def link(axis: int) -> Read | None:
        if axis == summed or (axis < own and operand.shape[axis] == 1):
            return None
        if axis < own:
            return Read(stack - own + axis)
        return Read(stack if number == 0 else stack + rows)

    return tuple(map(link, range(operand.type.rank)))


declare(SplitRule(_product_links, _again), "MatMul")


# ---------------------------------------------------------------------------------------- sources


def _counter(site: BlockSite) -> Value:
    (start, stop), = site.box
    dtype = site.node.attrs["dtype"]
    own = site.emit("Iota", size=stop - start, dtype=dtype)
    if stop - start == site.node.attrs["size"]:
        return own
    return site.emit("Add", own, site.start(0, dtype))


def _constant(site: BlockSite) -> Value:
    return site.emit("Const", **site.node.attrs)


declare(SplitRule(lambda node, number: (), _counter), "Iota")
declare(SplitRule(lambda node, number: (), _constant), "Const")


# ---------------------------------------------------------------------------------------- einsum


def einsum_letters(node: Node) -> tuple[list[str], str] | None:
    """The letters of a call's operands and of its result; None where the call is another one:
    of axes that are not named, or of a diagonal."""
    form = node.attrs["form"]
    text = form[1] if len(form) > 1 and type(form[1]) is str else ""
    before, arrow, after = text.replace(" ", "").partition("->")
    letters = before.split(",")
    operands = tuple(("operand", k) for k in range(len(node.inputs)))
    is_plain = arrow and form[2:] == operands and "." not in text and len(letters) == len(operands)
    if not is_plain or any(len({*word}) < len(word) for word in (*letters, after)):
        return None
    fits = all(len(word) == v.type.rank for word, v in zip(letters, node.inputs, strict=True))
    is_alone = len(node.types) == 1 and not dict(pair[1:] for pair in node.attrs["named"][1:])
    return (letters, after) if fits and is_alone and _sizes_agree(node, letters) else None


def _sizes_agree(node: Node, letters: list[str]) -> bool:
    """Whether no axis of length 1 is spread along another one's letter."""
    sizes: dict[str, set[int]] = {}
    for word, value in zip(letters, node.inputs, strict=True):
        for letter, size in zip(word, value.shape, strict=True):
            sizes.setdefault(letter, set()).add(int(size))
    return all(len(found) == 1 for found in sizes.values())


def _einsum_links(node: Node, number: int) -> Links:
    found = einsum_letters(node)
    assert found is not None
    letters, after = found
    return tuple(Read(after.index(c)) if c in after else None for c in letters[number])


def _einsum(site: BlockSite) -> Value:
    type_ = site.node.types[0]
    own = TensorType(type_.dtype, sizes_of(site.box), type_.kind)
    return site.emit("Einsum", *_operands(site), **{**site.node.attrs, "results": (own,)})


declare(SplitRule(_einsum_links, _einsum, keeps=lambda node: einsum_letters(node) is not None),
        "Einsum")
