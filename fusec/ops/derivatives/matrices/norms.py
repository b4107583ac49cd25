"""Norms and condition numbers: the gradient of each is a matrix of weights.

At the origin, and where elements or singular values are equal, the gradient is one of those beside
it: 0, or shares of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.reductions import expanded, total
from ..calls import arguments
from ..protocol import Cotangents, Rule, Site, Tangents, declare
from ..terms import Term, absolute, conj, real, sign, where
from .matrices import column, matmul, row
from .spectral import thin_svd


def _unit(x: Term, size: Term) -> Term:
    """``x / size``, and 0 where the size is."""
    nothing = size.equals(0)
    return where(nothing, 0, x / where(nothing, 1, size).cast(x.dtype))


def _direction(x: Term) -> Term:
    return sign(x) if x.dtype.kind != "c" else _unit(x, absolute(x))


def _vector_weights(x: Term, size: Term, order: Any, axes: tuple[int, ...]) -> Term:
    """The gradient of a vector norm, whose value is ``size``."""
    if order in (None, 2, "fro"):
        return _unit(x, size)
    if order == 0:
        return x.filled(0)
    if order == 1:
        return _direction(x)
    if np.isinf(order):
        chosen = absolute(x).equals(size).cast(size.dtype)
        return _direction(x) * (chosen / expanded(total(chosen, axes), axes)).cast(x.dtype)
    relative = absolute(_unit(x, size))
    return _direction(x) * (relative ** (order - 1)).cast(x.dtype)


def _matrix_weights(site: Site, x: Term, size: Term, order: Any) -> Term:
    """The gradient of a norm of matrices, the last two axes."""
    if order in (None, "fro"):
        return _unit(x, size)
    if order == "nuc" or abs(order) == 2:
        u, s, vh = thin_svd(x)
        chosen = s.filled(1) if order == "nuc" else _shares(s, s.rank - 1, order > 0)
        return matmul(u * row(chosen.cast(u.dtype)), vh)
    summed, other = x.rank - 2, x.rank - 1
    if abs(order) != 1:
        summed, other = other, summed
    sums = expanded(total(absolute(x), (summed,)), (summed,))
    return _direction(x) * _shares(sums, other, order > 0).cast(x.dtype)


def _shares(x: Term, axis: int, is_largest: bool) -> Term:
    """1 for the element that is the largest, or smallest; shares of it for equal ones."""
    chosen = x.emit("Max" if is_largest else "Min", axes=(axis,))
    equal = x.equals(expanded(chosen, (axis,))).cast(x.dtype)
    return equal / expanded(total(equal, (axis,)), (axis,))


def norm_weights(site: Site, given: dict[str, Any]) -> tuple[Term, tuple[int, ...]]:
    """The gradient of `np.linalg.norm`, and the axes that it is over."""
    x, (y,) = given["x" if "x" in given else "a"], site.results
    order, axis = given.get("ord"), given.get("axis")
    axes = _axes(axis, x.rank)
    size = y.emit("Reshape", shape=tuple(
        1 if d in axes else n for d, n in enumerate(x.shape)))
    if len(axes) == 1 or order is None:
        return _vector_weights(x, size, order, tuple(sorted(axes))), axes
    rest = [d for d in range(x.rank) if d not in axes]
    order_of_axes = (*rest, *axes)
    moved, size = (v.emit("Transpose", perm=order_of_axes) for v in (x, size))
    weights = _matrix_weights(site, moved, size, order)
    return weights.emit("Transpose", perm=tuple(np.argsort(order_of_axes).tolist())), axes


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    return tuple(a % rank for a in (axis if isinstance(axis, tuple | list) else (axis,)))


def norm_rules(names: str, skipped: int = 0) -> tuple[Rule, Rule]:
    """`vjp` and `jvp` of norms whose parameters have these names."""
    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), x = cotangents, site.operands[0]
        assert ct is not None
        weights, axes = norm_weights(site, arguments(site, names, skipped))
        shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        return [ct.emit("Reshape", shape=shape).cast(x.dtype) * weights,
                *[None] * (len(site.operands) - 1)]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        t, (y,) = tangents[0], site.results
        assert t is not None
        weights, axes = norm_weights(site, arguments(site, names, skipped))
        product = real(conj(weights) * t) if t.dtype.kind == "c" else weights * t
        return [total(product, tuple(sorted(axes))).emit("Reshape", shape=y.shape)]

    return vjp, jvp


_norm, _norm_jvp = norm_rules("x ord axis keepdims")
declare("LinalgNorm", vjp=_norm, jvp=_norm_jvp)


def _condition_weights(site: Site) -> Term:
    """The gradient of the largest singular value by the smallest one."""
    given = arguments(site, "x p")
    if given.get("p") not in (None, 2):
        site.refuse("p: of the condition number in the 2-norm alone fusec knows the derivative")
    u, s, vh = thin_svd(site.operands[0])
    last = s.shape[-1] - 1
    ends = [s.emit("Slice", starts=(*[0] * (s.rank - 1), k), steps=(1,) * s.rank,
                   sizes=(*s.shape[:-1], 1)) for k in (0, last)]
    largest, smallest = (s.equals(end).cast(s.dtype) for end in ends)
    weights = largest / ends[1] - smallest * ends[0] / (ends[1] * ends[1])
    return matmul(u * row(weights.cast(u.dtype)), vh)


def _cond(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,) = cotangents
    assert ct is not None
    weights = _condition_weights(site)
    return [column(column(ct)).cast(weights.dtype) * weights]


def _cond_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,) = tangents
    assert t is not None
    weights = _condition_weights(site)
    product = real(conj(weights) * t) if t.dtype.kind == "c" else weights * t
    return [total(product, (t.rank - 2, t.rank - 1))]


declare("LinalgCond", vjp=_cond, jvp=_cond_jvp)

__all__ = ["norm_rules"]
