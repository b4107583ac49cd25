"""Reductions: a cotangent goes back to every element that had a part in the result.

Of `Max` and `Min` equal elements share, as in JAX; where one is NaN the derivative is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fusec.ir.sizes.dims import Size

from ... import registry
from ...rows.composite import count_of
from ..protocol import (
    Cotangents,
    Rule,
    Site,
    Tangents,
    broadcast_to,
    declare,
    linear,
    zero_by_nature,
)
from ..terms import Term, conj, where
from .scans import others_product


def _axes(site: Site) -> tuple[int, ...]:
    return tuple(site.attrs["axes"])


def expanded(term: Term, axes: Sequence[int]) -> Term:
    """A result with the reduced axes again, of length 1."""
    return term.emit("ExpandDims", axes=tuple(axes)) if axes else term


def spread(term: Term, axes: Sequence[int], shape: Sequence[Size]) -> Term:
    """A result's cotangent, for each element that was reduced."""
    return broadcast_to(expanded(term, axes), shape)


def total(term: Term, axes: Sequence[int]) -> Term:
    """The sum over axes."""
    return term.emit("Sum", axes=tuple(axes)) if axes else term


def _weighted(weights: Callable[[Site], Term]) -> tuple[Rule, Rule]:
    """`vjp` and `jvp` of a result whose derivative by each element is a weight."""
    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), factor = cotangents, weights(site)
        assert ct is not None
        factor = conj(factor) if factor.dtype.kind == "c" else factor
        return [broadcast_to(expanded(ct, _axes(site)) * factor, site.operands[0].shape)]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        (t,) = tangents
        assert t is not None
        return [total(weights(site) * t, _axes(site))]

    return vjp, jvp


def _mean(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (x,) = cotangents, site.operands
    assert ct is not None
    return [spread(ct / _count(x, _axes(site)), _axes(site), x.shape)]


def _count(x: Term, axes: Sequence[int], less: float = 0) -> Term:
    return Term(x.builder, count_of(x.builder, x.value, axes, less))


def _centred(x: Term, axes: Sequence[int]) -> Term:
    """The distances from the mean."""
    return x - expanded(x.emit("Mean", axes=tuple(axes)), axes)


def _of_var(site: Site) -> Term:
    (x,), axes = site.operands, _axes(site)
    return _centred(x, axes) * (2 / _count(x, axes, site.attrs["ddof"]))


def _of_std(site: Site) -> Term:
    """The distances by the deviation; 0 where all elements are equal, a corner."""
    (x,), (deviation,), axes = site.operands, site.results, _axes(site)
    size = expanded(deviation * _count(x, axes, site.attrs["ddof"]), axes)
    nothing = size.equals(0)
    return where(nothing, 0, _centred(x, axes) / where(nothing, 1, size))


def _of_extremum(site: Site) -> Term:
    """1 for the element that was chosen, shares of it for equal ones."""
    (x,), (y,), axes = site.operands, site.results, _axes(site)
    chosen = x.equals(expanded(y, axes)).cast(x.dtype)
    return chosen / expanded(total(chosen, axes), axes)


def _extremum(site: Site, cotangents: Tangents) -> Cotangents:
    """The cotangent, divided among the elements that were chosen: once, not for every element."""
    (ct,), (x,), (y,), axes = cotangents, site.operands, site.results, _axes(site)
    assert ct is not None
    chosen = x.equals(expanded(y, axes)).cast(x.dtype)
    return [expanded(ct / total(chosen, axes), axes) * chosen]


def _of_prod(site: Site) -> Term:
    """The product of the others, without a division: elements may be 0."""
    (x,), axes = site.operands, _axes(site)
    kept = [d for d in range(x.rank) if d not in axes]
    order = (*kept, *axes)
    moved = x.emit("Transpose", perm=order)
    flat = moved.emit("Reshape", shape=(
        *(x.shape[d] for d in kept), math.prod(x.shape[d] for d in axes)))
    others = others_product(flat).emit("Reshape", shape=moved.shape)
    return others.emit("Transpose", perm=tuple(order.index(d) for d in range(x.rank)))


_EXTREMUM, _PROD = (_extremum, _weighted(_of_extremum)[1]), _weighted(_of_prod)
_RULES: dict[str, tuple[Rule, Rule]] = {
    "Mean": (_mean, linear), "Max": _EXTREMUM, "Min": _EXTREMUM,
    "Prod": _PROD, "Var": _weighted(_of_var), "Std": _weighted(_of_std),
}
for _name, (_vjp, _jvp) in _RULES.items():
    declare(_name, vjp=_vjp, jvp=_jvp)


def _fold(direction: int) -> Rule:
    """As the reduction that it writes out; of truth values nothing is asked."""
    def rule(site: Site, tangents: Tangents) -> Cotangents:
        row = registry.get(site.attrs["of"])
        found = (row.vjp, row.jvp)[direction]
        assert callable(found)
        return found(site, tangents)

    return rule


declare("Fold", vjp=_fold(0), jvp=_fold(1))
zero_by_nature("Any", "All", "ArgMax", "ArgMin")
