"""Scans: cumulative sums, products and extrema along one axis.

The derivative of a cumulative product is a linear recurrence, whose terms are found by doubling
(Kogge and Stone, IEEE Transactions on Computers C-22(8), 1973): no element is divided by, so zeros
are elements like others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.ir.sizes.dims import Dim

from ..protocol import Cotangents, Site, Tangents, declare
from ..terms import Term, conj, where


def _part(x: Term, axis: int, start: int, size: Any, step: int = 1) -> Term:
    """``size`` elements along an axis."""
    return x.emit(
        "Slice", starts=tuple(start if d == axis else 0 for d in range(x.rank)),
        steps=tuple(step if d == axis else 1 for d in range(x.rank)),
        sizes=tuple(size if d == axis else n for d, n in enumerate(x.shape)))


def flipped(x: Term, axis: int) -> Term:
    """The elements along an axis from the last to the first."""
    size = x.shape[axis]
    return x if size == 0 else _part(x, axis, size - 1, size, -1)


def shifted(x: Term, axis: int, by: int, fill: float) -> Term:
    """Each element ``by`` places further along an axis, behind ``fill``; the last are dropped."""
    size: Any = x.shape[axis]
    if size == 0:
        return x
    if not isinstance(size, Dim) and by >= size:
        return x.filled(fill)
    first = _part(x, axis, 0, by).filled(fill)
    if isinstance(size, Dim):  # maybe less than that
        return _part(first.emit("Concat", x, axis=axis), axis, 0, size)
    return first.emit("Concat", _part(x, axis, 0, size - by), axis=axis)


def scan(x: Term, combine: str, axis: int) -> Term:
    return x.emit("Scan", combine=combine, axes=(axis,))


def backward_sum(x: Term, axis: int) -> Term:
    """Of each element and those behind it."""
    return flipped(scan(flipped(x, axis), "Add", axis), axis)


def _before(x: Term, axis: int) -> Term:
    """The product of all elements before each."""
    return scan(shifted(x, axis, 1, 1), "Mul", axis)


def others_product(x: Term) -> Term:
    """For each element the product of the others along the last axis."""
    axis = x.rank - 1
    behind = flipped(_before(flipped(x, axis), axis), axis)
    return _before(x, axis) * behind


def _recurrence(site: Site, factors: Term, addends: Term, axis: int) -> Term:
    """``s[i] = addends[i] + factors[i] * s[i - 1]`` along an axis."""
    size = addends.shape[axis]
    if isinstance(size, Dim):
        site.refuse(f"the derivative of a cumulative product needs the length of its axis, and "
                    f"only the run knows {size}")
    by = 1
    while by < size:
        addends = addends + factors * shifted(addends, axis, by, 0)
        factors = factors * shifted(factors, axis, by, 0)
        by *= 2
    return addends


def _sum(site: Site, ct: Term, axis: int) -> Term:
    return backward_sum(ct, axis)


def product_back(site: Site, x: Term, ct: Term, axis: int) -> Term:
    """The products up to an element, times a recurrence from the last element."""
    x = conj(x) if x.dtype.kind == "c" else x
    factors = shifted(flipped(x, axis), axis, 1, 0)  # the element after
    return _before(x, axis) * flipped(
        _recurrence(site, factors, flipped(ct, axis), axis), axis)


def product_tangent(site: Site, x: Term, t: Term, axis: int) -> Term:
    """The tangent of cumulative products, given that of the factors."""
    return _recurrence(site, x, _before(x, axis) * t, axis)


def _chosen(site: Site, axis: int) -> Term:
    """The index of the element that each result is: of equal ones the last."""
    (x,), (y,) = site.operands, site.results
    return scan(where(x.equals(y), index_along(x, axis), 0), "Maximum", axis)


def index_along(x: Term, axis: int) -> Term:
    """For each element its index along an axis, int64."""
    builder = x.builder
    size: Any = x.shape[axis]
    counter = Term(builder, builder.emit("Iota", size=size, dtype=np.dtype(np.int64)))
    shape = tuple(size if d == axis else 1 for d in range(x.rank))
    return counter.emit("Reshape", shape=shape).emit("BroadcastTo", shape=x.shape)


def places(x: Term, index: Term, axis: int) -> list[Term]:
    """The indices of `Gather` and `Scatter` for ``index`` along one axis, itself along others."""
    return [index if d == axis else index_along(x, d) for d in range(x.rank)]


def gathered(x: Term, index: Term, axis: int) -> Term:
    """`np.take_along_axis`; indices are in range."""
    return x.emit("Gather", *places(index, index, axis), axes=tuple(range(x.rank)), at=0)


def scattered(target: Term, values: Term, index: Term, axis: int) -> Term:
    """The target with values added along an axis at indices."""
    return target.emit("Scatter", values, *places(index, index, axis),
                       axes=tuple(range(target.rank)), at=0, combine="Add")


def _extremum(site: Site, ct: Term, axis: int) -> Term:
    return scattered(ct.filled(0), ct, _chosen(site, axis), axis)


def _extremum_jvp(site: Site, t: Term, axis: int) -> Term:
    return gathered(t, _chosen(site, axis), axis)


def _product(site: Site, ct: Term, axis: int) -> Term:
    return product_back(site, site.operands[0], ct, axis)


def _product_jvp(site: Site, t: Term, axis: int) -> Term:
    return product_tangent(site, site.operands[0], t, axis)


_VJP = {"Add": _sum, "Mul": _product, "Maximum": _extremum, "Minimum": _extremum}
_JVP = {"Add": lambda site, t, axis: scan(t, "Add", axis), "Mul": _product_jvp,
        "Maximum": _extremum_jvp, "Minimum": _extremum_jvp}


def _scan_vjp(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,) = cotangents
    assert ct is not None
    return [_VJP[site.attrs["combine"]](site, ct, site.attrs["axes"][0])]


def _scan_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,) = tangents
    assert t is not None
    return [_JVP[site.attrs["combine"]](site, t, site.attrs["axes"][0])]


declare("Scan", vjp=_scan_vjp, jvp=_scan_jvp)
