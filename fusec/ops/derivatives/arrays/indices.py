"""Elements and parts at indices: an element that is read gets the cotangent of the result there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.ir.sizes.dims import Dim, maximum

from ...rows.sizes import size_value
from ...shapes import broadcast
from ..protocol import Addend, Cotangents, Site, Tangents, declare, linear, sum_to, zero_by_nature
from ..terms import Term, where

INT64 = np.dtype(np.int64)
_LINEAR = ("", "Add", "Sub")  # of what is there and what is put there
_EXTREMA = ("Maximum", "Minimum", "Fmax", "Fmin")


def counter(like: Term, size: Any) -> Term:
    """0, 1, 2, … of that length, int64."""
    return Term(like.builder, like.builder.emit("Iota", size=size, dtype=INT64))


def length(term: Term, axis: int) -> Term:
    """The length of an axis, int64."""
    builder, size = term.builder, term.shape[axis]
    if isinstance(size, Dim):
        return Term(builder, size_value(builder, size, [term.value])).cast(INT64)
    return Term(builder, builder.const(INT64.type(size)))


# ------------------------------------------------------------------------------ Gather and Scatter


def _gather(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (_, *indices) = cotangents, site.operands
    assert ct is not None
    place = _place(site.attrs)

    def add_to(total: Term) -> Term:
        return total.emit("Scatter", ct, *indices, **place, combine="Add")

    return [Addend(add_to), *[None] * len(indices)]


def _place(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {"axes": attrs["axes"], "at": attrs["at"]}


def _gathered(term: Term, site: Site) -> Term:
    """The elements of a term of the target's shape at a scatter's indices."""
    return term.emit("Gather", *site.operands[2:], **_place(site.attrs))


def _scatter(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (_, value, *indices) = cotangents, site.operands
    assert ct is not None
    combine = site.attrs.get("combine", "")
    if combine == "":
        into = ct.emit("Scatter", value.filled(0), *indices, **_place(site.attrs))
        found = where(_is_last(site), _gathered(ct, site), 0)
    elif combine in _LINEAR:
        into, found = ct, _gathered(ct, site)
        found = found if combine == "Add" else -found
    elif combine in _EXTREMA:
        into, found = _shares(site, ct)
    else:
        site.refuse(_no_rule(combine))
    return [into, found, *[None] * len(indices)]


def _no_rule(combine: str) -> str:
    return (f"elements that several indices name are joined by {combine} one after another: of "
            "sums, differences and extrema alone fusec knows the derivative")


def _is_last(site: Site) -> Term:
    """Whether an element of the value is the one that stays: of equal indices the last counts.

    The indices, numbered, are scattered as the value was; the numbers there are those that stay.
    """
    target, value, *indices = site.operands
    axes, at = site.attrs["axes"], site.attrs["at"]
    shape = tuple(broadcast([i.shape for i in indices]))
    lengths = tuple(target.shape[a] for a in axes)
    numbers = counter(value, math.prod(shape)).emit("Reshape", shape=shape)
    none = counter(value, math.prod(lengths)).emit("Reshape", shape=lengths)
    alone = {"axes": tuple(range(len(axes))), "at": 0}
    winners = none.emit("Scatter", numbers, *indices, **alone).emit("Gather", *indices, **alone)
    behind = value.rank - at - len(shape)
    last = winners.equals(numbers)
    if behind:
        last = last.emit("ExpandDims", axes=tuple(range(len(shape), len(shape) + behind)))
    return last if last.shape == value.shape else last.emit("BroadcastTo", shape=value.shape)


def _shares(site: Site, ct: Term) -> tuple[Term, Term]:
    """Of an extremum at indices: equal elements share, those there before and those put there."""
    (target, value, *indices), (result,) = site.operands, site.results
    stayed = result.equals(target).cast(ct.dtype)
    taken = _gathered(result, site).equals(value).cast(ct.dtype)
    count = stayed.emit("Scatter", taken, *indices, **_place(site.attrs), combine="Add")
    share = ct / count
    return share * stayed, _gathered(share, site) * taken


def _scatter_jvp(site: Site, tangents: Tangents) -> Tangents:
    combine = site.attrs.get("combine", "")
    if combine in _LINEAR:
        return linear(site, tangents)
    if combine not in _EXTREMA:
        site.refuse(_no_rule(combine))
    old, new = site.filled(tangents[:2], site.operands[:2])
    one = old.filled(1)
    stayed, taken = _shares(site, one)
    return [(stayed * old).emit("Scatter", taken * new, *site.operands[2:], **_place(site.attrs),
                                combine="Add")]


declare("Gather", vjp=_gather, jvp=linear)
declare("Scatter", vjp=_scatter, jvp=_scatter_jvp)

# -------------------------------------------------------------------------------- Pick and Window


def _kind_of(value: Term) -> str:
    return "array" if value.rank or value.value.type.kind == "array" else "scalar"


def _pick(site: Site, cotangents: Tangents) -> Cotangents:
    """Added to the elements there, read at the same indices."""
    (ct,), (_, *indices) = cotangents, site.operands
    assert ct is not None
    given = {k: v for k, v in site.attrs.items() if k != "kind"}

    def add_to(total: Term) -> Term:
        now = total.emit("Pick", *indices, **given, kind=_kind_of(ct))
        return total.emit("PickUpdate", now + ct, *indices, **given)

    return [Addend(add_to), *[None] * len(indices)]


def _pick_update(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (_, value, *indices) = cotangents, site.operands
    assert ct is not None
    part = ct.emit("Pick", *indices, **site.attrs, kind=_kind_of(value))  # before it is replaced
    return [ct.emit("PickUpdate", value.filled(0), *indices, **site.attrs), part,
            *[None] * len(indices)]


def _window(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (_, *places) = cotangents, site.operands
    assert ct is not None

    def add_to(total: Term) -> Term:
        now = total.emit("Window", *places, **site.attrs)
        return total.emit("WindowUpdate", now + ct, *places, **site.attrs)

    return [Addend(add_to), *[None] * len(places)]


def _window_update(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (_, value, *places) = cotangents, site.operands
    assert ct is not None
    part = ct.emit("Window", *places, **site.attrs)  # before it is replaced
    return [ct.emit("WindowUpdate", value.filled(0), *places, **site.attrs), part,
            *[None] * len(places)]


def _reserve(site: Site, cotangents: Tangents) -> Cotangents:
    """The rest of the buffer is nobody's."""
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    return [ct.emit("Slice", starts=(0,) * x.rank, steps=(1,) * x.rank, sizes=x.shape)]


declare("Pick", vjp=_pick, jvp=linear)
declare("PickUpdate", vjp=_pick_update, jvp=linear)
declare("Window", vjp=_window, jvp=linear)
declare("WindowUpdate", vjp=_window_update, jvp=linear)
declare("Reserve", vjp=_reserve, jvp=linear)

# ------------------------------------------------------------------------- diagonals and constants


def _diagonal(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    offset = site.attrs["offset"]
    firsts = dict(zip(site.attrs["axes"], (maximum(-offset, 0), maximum(offset, 0)), strict=True))
    axes = tuple(sorted(firsts))
    numbers = counter(ct, ct.shape[-1])
    indices = [numbers + firsts[axis] if firsts[axis] else numbers for axis in axes]

    def add_to(total: Term) -> Term:
        return total.emit("Scatter", ct, *indices, axes=axes, at=x.rank - 2, combine="Add")

    return [Addend(add_to)]


def _fill(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (value, *sizes) = cotangents, site.operands
    assert ct is not None
    return [sum_to(ct, value.shape), *[None] * len(sizes)]


declare("Diagonal", vjp=_diagonal, jvp=linear)
declare("Fill", vjp=_fill, jvp=linear)
zero_by_nature(
    "Input", "Const", "Iota", "Size", "Extent", "Counters", "Check", "BoundsCheck", "Ran")
