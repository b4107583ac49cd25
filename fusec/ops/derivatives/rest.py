"""Library calls that write to an array, fits of polynomials; what is refused, with its reason."""

from __future__ import annotations

from typing import Any

from ..library import decode
from .calls import arguments, array, call
from .indices import counter
from .matrices import adjoint, as_like, column, matmul
from .moves import MOVES, move
from .order import permuted
from .protocol import Cotangents, Site, Tangents, broadcast_to, declare, linear, refused, sum_to
from .spectral import by_pinv, pinv_of, pinv_tangent
from .terms import Term, where

# --------------------------------------------------------------------------------- calls by name


def _moves(site: Site) -> None:
    if site.attrs["form"][1] not in MOVES:
        where_from = "np" if site.node.op == "Numpy" else "ndarray"
        site.refuse(f"fusec has no rule for {where_from}.{site.attrs['form'][1]} of arrays whose "
                    "size the data decides")


def _named(site: Site, cotangents: Tangents) -> Cotangents:
    _moves(site)
    return move(site, cotangents)


def _named_jvp(site: Site, tangents: Tangents) -> Tangents:
    _moves(site)
    return linear(site, tangents)


declare("Numpy", "Method", vjp=_named, jvp=_named_jvp)

# ------------------------------------------------------------------------------- writes by a mask


def _written(site: Site) -> tuple[Term, Term]:
    """The mask and the value of ``x[mask] = value``."""
    _, key, value = (decode(form, site.operands) for form in site.attrs["form"][1:])
    if not isinstance(key, Term) or key.dtype.kind != "b" or not isinstance(value, Term) or (
            key.shape != site.operands[0].shape):
        site.refuse("of writes by a mask of the array's shape alone fusec knows the derivative")
    return key, value


def _set_item(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (mask, value) = cotangents, _written(site)
    assert ct is not None
    if value.rank == 0:
        found = sum_to(where(mask, ct, 0), ())
    else:
        found = call(ct, "GetItem", ct, mask, results=[array(ct.dtype, value.shape)])[0]
    return [where(mask, 0, ct) if k == 0 else as_like(found, x) if x.value == value.value else None
            for k, x in enumerate(site.operands)]


def _set_item_jvp(site: Site, tangents: Tangents) -> Tangents:
    _written(site)
    return linear(site, tangents)


def _copyto(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), given = cotangents, arguments(site, "dst src casting where")
    assert ct is not None
    source, mask = given["src"], given.get("where", True)
    if mask is True:
        kept, taken = ct.filled(0), ct
    elif isinstance(mask, Term):
        mask = broadcast_to(mask, ct.shape)
        kept, taken = where(mask, 0, ct), where(mask, ct, 0)
    else:
        site.refuse("where is a list: make it an array")
    return [kept if k == 0 else as_like(sum_to(taken, x.shape), x)
            if isinstance(source, Term) and x.value == source.value else None
            for k, x in enumerate(site.operands)]


declare("SetItem", vjp=_set_item, jvp=_set_item_jvp)
declare("Copyto", vjp=_copyto, jvp=linear)
_sort_complex, _sort_complex_jvp = permuted("a", True)
declare("SortComplex", vjp=_sort_complex, jvp=_sort_complex_jvp)

# -------------------------------------------------------------------------------------- polynomials


class _Fit:
    """`np.polyfit` as least squares with powers of ``x``."""

    def __init__(self, site: Site) -> None:
        given = arguments(site, "x y deg rcond full w cov")
        self.x, self.y = given["x"], given["y"]
        if not isinstance(self.x, Term) or not isinstance(self.y, Term):
            site.refuse("points are a list: make them an array")
        if any(given.get(k) for k in ("full", "cov")) or given.get("w") is not None:
            site.refuse("with w, full or cov: fit with np.linalg.lstsq")
        number = site.results[0].shape[0]
        exponents = (number - 1 - counter(self.x, number)).cast(self.y.dtype)
        base, none = column(self.x.cast(self.y.dtype)), exponents.equals(0)
        self.matrix = base ** exponents
        self.slopes = where(none, 0, exponents * base ** where(none, 1, exponents - 1))
        self.back = pinv_of(self.matrix)

    def columns(self, term: Term) -> Term:
        return column(term) if term.rank == 1 else term


def _polyfit(site: Site, cotangents: Tangents) -> Cotangents:
    ct, fit = cotangents[0], _Fit(site)
    assert ct is not None
    ct, right = fit.columns(ct), fit.columns(fit.y)
    by_y = matmul(adjoint(fit.back), ct).emit("Reshape", shape=fit.y.shape)
    by_matrix = by_pinv(fit.matrix, fit.back, matmul(ct, adjoint(right)))
    by_x = as_like((by_matrix * fit.slopes).emit("Sum", axes=(1,)), fit.x)
    found: dict[Any, Term] = {fit.y.value: by_y}
    found[fit.x.value] = found[fit.x.value] + by_x if fit.x.value in found else by_x
    return [found.get(v.value) for v in site.operands]


def _polyfit_jvp(site: Site, tangents: Tangents) -> Tangents:
    fit, given = _Fit(site), dict(zip(site.node.inputs, tangents, strict=True))
    by_x, by_y = (v.filled(0) if given[v.value] is None else given[v.value]
                  for v in (fit.x, fit.y))
    assert by_x is not None and by_y is not None
    change = column(by_x.cast(fit.y.dtype)) * fit.slopes
    t = matmul(fit.back, fit.columns(by_y)) + matmul(
        pinv_tangent(fit.matrix, fit.back, change), fit.columns(fit.y))
    return [t.emit("Reshape", shape=site.results[0].shape)]


declare("Polyfit", vjp=_polyfit, jvp=_polyfit_jvp)

# ------------------------------------------------------------------------------------------ refused

refused("its edges move with the data, and what falls between them jumps: take counts, which are "
        "integers, or edges that are given", "Histogram", "Histogram2d", "Histogramdd",
        "HistogramBinEdges")
refused("equal elements become one, of which nothing says whose it is", "Unique", "UniqueAll",
        "UniqueCounts", "UniqueInverse", "UniqueValues", "Union1d", "Intersect1d", "Setdiff1d",
        "Setxor1d")
refused("fusec has no rule for it: write it as x[i] = v", "PutAlongAxis", "Put", "Place")
refused("fusec has no rule for it: multiply out (np.convolve)", "Poly", "Polymul")
refused("fusec has no rule for it: write start * (stop / start) ** np.linspace(0, 1, n)",
        "Geomspace")
refused("fusec has no rule for calls with out=: assign the result (x[:] = y)", "CallInto")
refused("what an object outside of the graph makes of a number is not known: draw standard "
        "numbers and scale them", "HostCall")
refused("a pass made it, and derivatives are taken of graphs as they are traced", "NumPy", "Fused",
        "Send", "Recv")
