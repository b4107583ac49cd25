"""Sums and products, selection and conversion."""

from __future__ import annotations

from ..protocol import (
    Site,
    Tangents,
    broadcast_to,
    declare,
    linear,
    sum_to,
    takes_masks,
    zero_by_nature,
)
from ..terms import Term, where

declare("Add", partials=(lambda a, b, y: 1, lambda a, b, y: 1))
declare("Sub", partials=(lambda a, b, y: 1, lambda a, b, y: -1))
declare("Mul", partials=(lambda a, b, y: b, lambda a, b, y: a))
declare("Neg", partials=(lambda x, y: -1,))
declare("Pos", "Copy", partials=(lambda x, y: 1,))


@takes_masks
def _where(site: Site, cotangents: Tangents) -> Tangents:
    """A cotangent goes to the side that was chosen, and to that alone: see `Term.mask`."""
    (ct,), (condition, *sides) = cotangents, site.operands
    assert ct is not None
    condition = _like(condition, ct)
    parts = (site.masked(ct, condition), site.masked(ct, condition.emit("LogicalNot")))
    return [None, *(part if side.shape == ct.shape else sum_to(part.settled(), side.shape)
                    for part, side in zip(parts, sides, strict=True))]


def _like(condition: Term, ct: Term) -> Term:
    same = condition.shape == ct.shape
    return condition if same else condition.emit("BroadcastTo", shape=ct.shape)


def _where_jvp(site: Site, tangents: Tangents) -> Tangents:
    condition, *sides = site.operands
    a, b = site.filled(tangents[1:], sides)
    return [where(condition, a, b)]


def _cast(site: Site, cotangents: Tangents) -> Tangents:
    """Back in the dtype of the operand; of a complex result that was real, the real part."""
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    if ct.dtype.kind == "c" and x.dtype.kind == "f":
        ct = ct.emit("Real")
    return [ct.cast(x.dtype)]


def _sum(site: Site, cotangents: Tangents) -> Tangents:
    """The same for every element that was added."""
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    if not ct.rank:
        return [broadcast_to(ct, x.shape)]
    return [broadcast_to(ct.emit("ExpandDims", axes=site.attrs["axes"]), x.shape)]


declare("Sum", vjp=_sum, jvp=linear)
declare("Where", vjp=_where, jvp=_where_jvp)
declare("Cast", vjp=_cast, jvp=linear)
zero_by_nature("StopGradient")
