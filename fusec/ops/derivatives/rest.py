"""Library calls by name, fits of polynomials; and refusals, with their reasons."""

from __future__ import annotations

from fusec.ir import Value

from .arrays.indices import counter
from .arrays.moves import MOVES, move, move_jvp
from .arrays.order import permuted
from .calls import arguments, by_values
from .elements.widening_calls import widely
from .matrices.matrices import adjoint, as_like, column, matmul
from .matrices.spectral import by_pinv, pinv_of, pinv_tangent
from .protocol import Cotangents, Site, Tangents, declare, refused
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
    return move_jvp(site, tangents)


declare("Numpy", "Method", vjp=_named, jvp=_named_jvp)

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
        if not isinstance(self.x.shape[0], int) or self.x.shape[0] < number:
            site.refuse("of as many points as coefficients or more alone fusec knows the "
                        "derivative")
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
    found: dict[Value, Term] = {fit.y.value: by_y}
    found[fit.x.value] = found[fit.x.value] + by_x if fit.x.value in found else by_x
    return by_values(site, found)


def _polyfit_jvp(site: Site, tangents: Tangents) -> Tangents:
    fit = _Fit(site)
    given = {x.value: t for x, t in zip(site.operands, tangents, strict=True)}
    by_x, by_y = (v.filled(0) if given[v.value] is None else given[v.value]
                  for v in (fit.x, fit.y))
    assert by_x is not None and by_y is not None
    change = column(by_x.cast(fit.y.dtype)) * fit.slopes
    t = matmul(fit.back, fit.columns(by_y)) + matmul(
        pinv_tangent(fit.matrix, fit.back, change), fit.columns(fit.y))
    return [t.emit("Reshape", shape=site.results[0].shape)]


_polyfit_wide, _polyfit_wide_jvp = widely(_polyfit, _polyfit_jvp)
declare("Polyfit", vjp=_polyfit_wide, jvp=_polyfit_wide_jvp)

# ------------------------------------------------------------------------------------------ refused

refused("its edges move with the data, and what falls between them jumps: take counts, which are "
        "integers, or edges that are given", "Histogram", "Histogram2d", "Histogramdd",
        "HistogramBinEdges")
refused("equal elements become one, of which nothing says whose it is", "Unique", "UniqueAll",
        "UniqueCounts", "UniqueInverse", "UniqueValues", "Union1d", "Intersect1d", "Setdiff1d",
        "Setxor1d")
refused("fusec has no rule for it: multiply out (np.convolve)", "Poly", "Polymul")
refused("fusec has no rule for it: write start * (stop / start) ** np.linspace(0, 1, n)",
        "Geomspace")
refused("fusec has no rule for calls with out=: assign the result (x[:] = y)", "CallInto")
refused("Numba compiles it, and nothing differentiates that: give its derivatives, "
        "fusec.vectorize(f, derivative=...)", "ScalarCall")
refused("what an object outside of the graph makes of a number is not known: draw standard "
        "numbers and scale them", "HostCall")
refused("a pass made it, and derivatives are taken of graphs as they are traced", "NumPy", "Fused",
        "Send", "Recv", "Fence")
