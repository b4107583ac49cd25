"""Eigenvalues, singular values, and functions of them: norms, pseudo-inverses, least squares.

Formulas: M. B. Giles, *Collected matrix derivative results* (2008), section 3; J. Townsend,
*Differentiating the singular value decomposition* (2016); G. H. Golub and V. Pereyra, SIAM Journal
on Numerical Analysis 10(2), 1973, for pseudo-inverses.

Where eigenvalues, or singular values, are equal, vectors of theirs have no derivative: it is NaN or
infinite if it is asked for; the values have one that is right for functions that treat them alike.
Complex vectors are any multiples of size 1; here they do not turn along themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...complex_parts import component
from ..calls import arguments, array, call
from ..protocol import Cotangents, Site, Tangents, declare
from ..terms import Term, absolute, imag, where
from .matrices import (
    adjoint,
    as_like,
    column,
    diagonal,
    imaginary_part,
    matmul,
    mirrored,
    of_triangle,
    on_diagonal,
    row,
    with_diagonal,
)

# -------------------------------------------------------------------------------------- symmetric


def _gaps(w: Term) -> Term:
    """``1 / (w[j] - w[i])``, and 0 on the diagonal."""
    gaps = row(w) - column(w)
    return on_diagonal(gaps.filled(0), 1 / on_diagonal(gaps.filled(1), gaps))


def _phase_free(along: Term, *vectors: Term) -> Term:
    """1 where a result does not depend on the phases of complex vectors, NaN where it does.

    Such a result has no derivative that holds for more than one LAPACK.  ``along``: the cotangents'
    parts along the vectors, whose imaginary parts say how it depends on their phases.
    """
    if along.dtype.kind != "c":
        return along.number(1)
    turned = imag(along)
    size = turned.filled(0)
    for x in vectors:
        size = size + absolute(x).emit("Sum", axes=(x.rank - 2,))
    tolerance = float(np.finfo(along.dtype).eps) ** 0.5
    holds = turned.emit("Abs") <= tolerance * size
    return row(where(holds, along.filled(1), np.nan))


def eigh_by_values(v: Term, w: Term, by_w: Term | None, by_v: Term | None, is_lower: bool) -> Term:
    """The cotangent of a Hermitian matrix, given those of eigenvalues and eigenvectors."""
    inner = None if by_w is None else with_diagonal(by_w.cast(v.dtype))
    if by_v is not None:
        along = matmul(adjoint(v), by_v)
        turned = _gaps(w).cast(v.dtype) * along * _phase_free(diagonal(along), by_v)
        inner = turned if inner is None else inner + turned
    assert inner is not None
    return of_triangle(matmul(v, matmul(inner, adjoint(v))), is_lower)


def eigh_tangents(v: Term, w: Term, t: Term, is_lower: bool) -> tuple[Term, Term]:
    """The tangents of eigenvalues and eigenvectors, given that of the matrix."""
    inner = matmul(adjoint(v), matmul(mirrored(t, is_lower), v))
    return as_like(diagonal(inner), w), matmul(v, _gaps(w).cast(v.dtype) * inner)


def _is_lower(site: Site) -> bool:
    return str(arguments(site, "a UPLO").get("UPLO", "L")).upper() == "L"


def eigh_of(a: Term, is_lower: bool) -> tuple[Term, Term]:
    w, v = call(a, "LinalgEigh", a, "L" if is_lower else "U", results=[
        array(real_of(a.dtype), a.shape[:-1]), array(a.dtype, a.shape)])
    return w, v


def real_of(dtype: np.dtype) -> np.dtype:
    return component(dtype) if dtype.kind == "c" else dtype


def _eigh(site: Site, cotangents: Tangents) -> Cotangents:
    (by_w, by_v), (w, v) = cotangents, site.results
    return [eigh_by_values(v, w, by_w, by_v, _is_lower(site))]


def _eigh_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (w, v) = tangents, site.results
    assert t is not None
    return eigh_tangents(v, w, t, _is_lower(site))


def _eigvalsh(site: Site, cotangents: Tangents) -> Cotangents:
    (by_w,), (a,) = cotangents, site.operands
    w, v = eigh_of(a, _is_lower(site))
    return [eigh_by_values(v, w, by_w, None, _is_lower(site))]


def _eigvalsh_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (a,) = tangents, site.operands
    assert t is not None
    w, v = eigh_of(a, _is_lower(site))
    return [eigh_tangents(v, w, t, _is_lower(site))[0]]


declare("LinalgEigh", vjp=_eigh, jvp=_eigh_jvp)
declare("LinalgEigvalsh", vjp=_eigvalsh, jvp=_eigvalsh_jvp)

# ------------------------------------------------------------------------------- singular values


def thin_svd(a: Term) -> tuple[Term, Term, Term]:
    """``u``, ``s`` and ``vh`` with as many vectors as there are singular values."""
    (m, n), stack = a.shape[-2:], a.shape[:-2]
    k = min(m, n)
    u, s, vh = call(a, "LinalgSvd", a, full_matrices=False, results=[
        array(a.dtype, (*stack, m, k)), array(real_of(a.dtype), (*stack, k)),
        array(a.dtype, (*stack, k, n))])
    return u, s, vh


def _projected_out(basis: Term, x: Term) -> Term:
    return x - matmul(basis, matmul(adjoint(basis), x))


def _of_both_phases(u: Term, v: Term, by_u: Term | None, by_vh: Term | None) -> Term:
    """See `_phase_free`: left and right vectors turn together."""
    if u.dtype.kind != "c":
        return u.number(1)
    left = u.filled(0) if by_u is None else by_u
    right = v.filled(0) if by_vh is None else adjoint(by_vh)
    along = diagonal(matmul(adjoint(u), left)) + diagonal(matmul(adjoint(v), right))
    return _phase_free(along, left, right)


def svd_by_values(
    u: Term, s: Term, vh: Term, by_u: Term | None, by_s: Term | None, by_vh: Term | None
) -> Term:
    """The cotangent of a matrix, given those of its thin singular value decomposition."""
    v, scale, dtype = adjoint(vh), s.cast(u.dtype), u.dtype
    gaps = _gaps(s * s).cast(dtype)
    inner = s.filled(0) if by_s is None else by_s
    middle = with_diagonal(inner.cast(dtype))
    outer: Term | None = None
    free = _of_both_phases(u, v, by_u, by_vh)
    if by_u is not None:
        along = matmul(adjoint(u), by_u) * free
        half = gaps * along
        middle = middle + (half + adjoint(half)) * row(scale)
        if dtype.kind == "c":
            middle = middle + on_diagonal(imaginary_part(along)) / row(scale)
        outer = matmul(_projected_out(u, by_u) / row(scale), vh)
    if by_vh is not None:
        by_v = adjoint(by_vh)
        half = gaps * matmul(vh, by_v) * free
        middle = middle + column(scale) * (half + adjoint(half))
        part = matmul(u, adjoint(_projected_out(v, by_v) / row(scale)))
        outer = part if outer is None else outer + part
    whole = matmul(u, matmul(middle, vh))
    return whole if outer is None else whole + outer


def svd_tangents(u: Term, s: Term, vh: Term, t: Term) -> tuple[Term, Term, Term]:
    """The tangents of a thin singular value decomposition, given that of the matrix."""
    v, scale, dtype = adjoint(vh), s.cast(u.dtype), u.dtype
    gaps, inner = _gaps(s * s).cast(dtype), matmul(adjoint(u), matmul(t, adjoint(vh)))
    right, left = inner * row(scale), column(scale) * inner
    turned = gaps * (right + adjoint(right))
    if dtype.kind == "c":
        turned = turned + on_diagonal(imaginary_part(inner)) / row(scale)
    by_u = matmul(u, turned) + _projected_out(u, matmul(t, v)) / row(scale)
    by_v = matmul(v, gaps * (left + adjoint(left))) + _projected_out(
        v, matmul(adjoint(t), u)) / row(scale)
    return by_u, as_like(diagonal(inner), s), adjoint(by_v)


def svd_arguments(site: Site) -> dict[str, Any]:
    given = arguments(site, "a full_matrices compute_uv hermitian")
    if given.get("hermitian"):
        site.refuse("hermitian=True: take np.linalg.eigh")
    return given


def _is_thin(site: Site) -> bool:
    (a,), given = site.operands, svd_arguments(site)
    return a.shape[-2] == a.shape[-1] or not given.get("full_matrices", True)


_NOT_THIN = ("with full_matrices=True some vectors are any that fit: full_matrices=False has none "
             "such")


def svd(site: Site, cotangents: Tangents) -> Cotangents:
    (a,) = site.operands
    if len(site.results) == 1:
        svd_arguments(site)
        u, s, vh = thin_svd(a)
        return [svd_by_values(u, s, vh, None, cotangents[0], None)]
    by_u, by_s, by_vh = cotangents
    if _is_thin(site):
        return [svd_by_values(*_three(site.results), by_u, by_s, by_vh)]
    if by_u is not None or by_vh is not None:
        site.refuse(_NOT_THIN)
    return [svd_by_values(*thin_svd(a), None, by_s, None)]


def _three(terms: Any) -> tuple[Term, Term, Term]:
    u, s, vh = terms
    return u, s, vh


def svd_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (a,) = tangents, site.operands
    assert t is not None
    if len(site.results) == 1:
        svd_arguments(site)
        return [svd_tangents(*thin_svd(a), t)[1]]
    if _is_thin(site):
        return svd_tangents(*_three(site.results), t)
    by_u, by_s, by_vh = svd_tangents(*thin_svd(a), t)
    u, _, vh = site.results
    return _widened(by_u, u, u.rank - 1), by_s, _widened(by_vh, vh, vh.rank - 2)


def _widened(part: Term, whole: Term, axis: int) -> Term:
    """Vectors that are any that fit have no tangent: NaN."""
    if part.shape == whole.shape:
        return part
    shape = tuple(n - m if d == axis else n for d, (n, m) in enumerate(
        zip(whole.shape, part.shape, strict=True)))
    rest = part.number(np.nan).emit("BroadcastTo", shape=shape)
    return part.emit("Concat", rest, axis=axis)


declare("LinalgSvd", vjp=svd, jvp=svd_jvp)
declare("LinalgSvdvals", vjp=svd, jvp=svd_jvp)

# ----------------------------------------------------------------- pseudo-inverse, least squares


def _rest(a: Term, b: Term, x: Term) -> Term:
    """``x - a @ b @ x``"""
    return x - matmul(a, matmul(b, x))


def by_pinv(a: Term, p: Term, g: Term) -> Term:
    """The cotangent of a matrix of constant rank, given that of its pseudo-inverse ``p``."""
    ph, gh = adjoint(p), adjoint(g)
    first = -matmul(ph, matmul(g, ph))
    second = _rest(a, p, matmul(gh, matmul(p, ph)))
    third = adjoint(_rest(adjoint(a), ph, matmul(g, matmul(ph, p))))
    return first + second + third


def pinv_tangent(a: Term, p: Term, t: Term) -> Term:
    """The tangent of the pseudo-inverse ``p`` of a matrix of constant rank."""
    ph, th = adjoint(p), adjoint(t)
    first = -matmul(p, matmul(t, p))
    second = adjoint(_rest(a, p, matmul(t, matmul(p, ph))))
    third = _rest(p, a, matmul(th, matmul(ph, p)))
    return first + second + third


def _not_hermitian(site: Site) -> Term:
    if arguments(site, "a rcond hermitian").get("hermitian"):
        site.refuse("hermitian=True: leave it out")
    return site.operands[0]


def _pinv(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), a, (p,) = cotangents, _not_hermitian(site), site.results
    assert ct is not None
    return [by_pinv(a, p, ct), *[None] * (len(site.operands) - 1)]


def _pinv_jvp(site: Site, tangents: Tangents) -> Tangents:
    t, a, (p,) = tangents[0], _not_hermitian(site), site.results
    return [None if t is None else pinv_tangent(a, p, t)]


declare("LinalgPinv", vjp=_pinv, jvp=_pinv_jvp)


def pinv_of(a: Term) -> Term:
    return call(a, "LinalgPinv", a, results=[
        array(a.dtype, (*a.shape[:-2], a.shape[-1], a.shape[-2]))])[0]


def lstsq(site: Site, cotangents: Tangents) -> Cotangents:
    """Of the solution; residuals and singular values are computed beside it."""
    ct, (a, b, *others) = cotangents[0], site.operands
    if any(other is not None for other in cotangents[1:]):
        site.refuse("of what it returns the first, the solution, has a rule: compute the others "
                    "from it (b - a @ x) and with np.linalg.svd")
    assert ct is not None
    p = pinv_of(a)
    ct, right = (column(x) if b.rank == 1 else x for x in (ct, b))
    by_b = matmul(adjoint(p), ct)
    return [by_pinv(a, p, matmul(ct, adjoint(right))), by_b.emit("Reshape", shape=b.shape),
            *[None] * len(others)]


def lstsq_jvp(site: Site, tangents: Tangents) -> Tangents:
    (a, b, *_), x = site.operands, site.results[0]
    by_a, by_b = site.filled(tangents[:2], [a, b])
    p = pinv_of(a)
    by_b, right = (column(v) if b.rank == 1 else v for v in (by_b, b))
    t = matmul(p, by_b) + matmul(pinv_tangent(a, p, by_a), right)
    return [t.emit("Reshape", shape=x.shape), *[None] * (len(site.results) - 1)]


declare("LinalgLstsq", vjp=lstsq, jvp=lstsq_jvp)

__all__ = [
    "by_pinv", "eigh_by_values", "eigh_of", "eigh_tangents", "lstsq", "lstsq_jvp", "pinv_of",
    "pinv_tangent", "real_of", "svd", "svd_by_values", "svd_jvp", "svd_tangents", "thin_svd",
]
