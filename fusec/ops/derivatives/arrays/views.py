"""Views, and arrays put together of parts: linear, so tangents go the way of the values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fusec.ir.sizes.dims import Dim, Size

from ..protocol import Addend, Cotangents, Site, Tangents, declare, linear, sum_to
from ..terms import Term
from .padded_sums import put_into_zeros

SMALL = 4  # parts of an array are small that are no more than one of so many


def _slice(site: Site, cotangents: Tangents) -> Cotangents:
    """A small part is added to the elements there, in place; a large one padded, so that the sum of
    several is one kernel, or put where there are only zeros."""
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    is_small = _is_small(ct.shape, x.shape)

    def add_to(total: Term) -> Term:
        if not x.rank:  # the whole: a number has no part
            return total + ct
        put = put_into_zeros(total, ct, site.attrs)
        if put is not None:
            return put
        if not is_small:
            return total + x.filled(0).emit("SliceUpdate", ct, **site.attrs)
        now = total.emit("Slice", **site.attrs)
        return total.emit("SliceUpdate", now + ct, **site.attrs)

    return [Addend(add_to)]


def _is_small(part: Sequence[Size], whole: Sequence[Size]) -> bool:
    sizes = [int(getattr(n, "hint", n)) for n in (*part, *whole) if not (
        isinstance(n, Dim))]
    return len(sizes) == 2 * len(part) and SMALL * math.prod(sizes[:len(part)]) <= math.prod(
        sizes[len(part):])


def _slice_update(site: Site, cotangents: Tangents) -> Tangents:
    """Overwritten elements count no longer; the value counts where it was put."""
    (ct,), (_, value) = cotangents, site.operands
    assert ct is not None
    part = ct.emit("Slice", **site.attrs)  # before it is replaced, which then may be in place
    return [ct.emit("SliceUpdate", value.filled(0), **site.attrs), part]


def _transpose(site: Site, cotangents: Tangents) -> Tangents:
    (ct,) = cotangents
    assert ct is not None
    return [ct.emit("Transpose", perm=tuple(np.argsort(site.attrs["perm"]).tolist()))]


def _broadcast(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    return [sum_to(ct, x.shape)]


def _reshape(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    return [ct.emit("Reshape", shape=x.shape)]


def _expand_dims(site: Site, cotangents: Tangents) -> Tangents:
    (ct,) = cotangents
    assert ct is not None
    return [ct.emit("Squeeze", axes=site.attrs["axes"])]


def _squeeze(site: Site, cotangents: Tangents) -> Tangents:
    (ct,) = cotangents
    assert ct is not None
    return [ct.emit("ExpandDims", axes=site.attrs["axes"]) if site.attrs["axes"] else ct]


def _concat(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), axis, start = cotangents, site.attrs["axis"], 0
    assert ct is not None
    parts: list[Term | None] = []
    for part in site.operands:
        starts = tuple(start if d == axis else 0 for d in range(ct.rank))
        parts.append(ct.emit("Slice", starts=starts, steps=(1,) * ct.rank, sizes=part.shape))
        start = start + part.shape[axis]
    return parts


declare("Slice", vjp=_slice, jvp=linear)
declare("SliceUpdate", vjp=_slice_update, jvp=linear)
declare("Transpose", vjp=_transpose, jvp=linear)
declare("BroadcastTo", vjp=_broadcast, jvp=linear)
declare("Reshape", vjp=_reshape, jvp=linear)
declare("ExpandDims", vjp=_expand_dims, jvp=linear)
declare("Squeeze", vjp=_squeeze, jvp=linear)
declare("Concat", vjp=_concat, jvp=linear)
