"""Linear systems, determinants and factors that no eigenvalue is needed for.

Formulas: M. B. Giles, *Collected matrix derivative results for forward and reverse mode algorithmic
differentiation* (2008); I. Murray, *Differentiation of the Cholesky decomposition* (arXiv
1602.07527); S. F. Walter and L. Lehmann, *Algorithmic differentiation of linear algebra functions
with application in optimum experimental design* (arXiv 1001.1654), for QR.

Of a matrix of which LAPACK reads one triangle, the other triangle has the cotangent 0, and the one
that is read all of it: that is the derivative of NumPy's function.
"""

from __future__ import annotations

from typing import Any

from ..calls import arguments, array, call
from ..protocol import Cotangents, Site, Tangents, declare
from ..terms import Term, imag, real
from .matrices import (
    adjoint,
    as_like,
    column,
    conjugated,
    diagonal,
    imaginary_part,
    inverse,
    lower,
    matmul,
    mirrored,
    of_triangle,
    on_diagonal,
    row,
    solved,
    strictly_lower,
    sum_to,
    upper,
)

# ------------------------------------------------------------------------------ inverse and solve


def inv(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (y,) = cotangents, site.results
    assert ct is not None
    return [-matmul(adjoint(y), matmul(ct, adjoint(y)))]


def inv_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (y,) = tangents, site.results
    assert t is not None
    return [-matmul(y, matmul(t, y))]


def _columns(site: Site, *terms: Term) -> tuple[Term, ...]:
    """Terms like the right-hand side, vectors as matrices of one column."""
    is_vector = site.operands[1].rank == 1
    return tuple(column(x) if is_vector else x for x in terms)


def solve(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a, b), (x,) = cotangents, site.operands, site.results
    assert ct is not None
    ct, x = _columns(site, ct, x)
    by_b = solved(adjoint(a.cast(x.dtype)), ct)
    by_a = -matmul(by_b, adjoint(x))
    return [as_like(sum_to(by_a, a.shape), a),
            as_like(_shaped(by_b, b), b)]


def _shaped(g: Term, b: Term) -> Term:
    return sum_to(g, (*b.shape, 1) if b.rank == 1 else b.shape).emit("Reshape", shape=b.shape)


def solve_jvp(site: Site, tangents: Tangents) -> Tangents:
    (a, b), (x,) = site.operands, site.results
    by_a, by_b = site.filled(tangents, [a, b])
    by_b, column_x = _columns(site, by_b.cast(x.dtype), x)
    t = solved(a.cast(x.dtype), by_b - matmul(by_a.cast(x.dtype), column_x))
    return [t.emit("Reshape", shape=x.shape)]


declare("LinalgInv", vjp=inv, jvp=inv_jvp)
declare("LinalgSolve", vjp=solve, jvp=solve_jvp)

# ---------------------------------------------------------------------------------- determinants


def det(site: Site, cotangents: Tangents) -> Cotangents:
    """Jacobi's formula: the cofactors, which singular matrices have, too."""
    (ct,), (a,), (y,) = cotangents, site.operands, site.results
    assert ct is not None
    return [column(column(ct)) * conjugated(_cofactors(a, y))]


def det_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (a,), (y,) = tangents, site.operands, site.results
    assert t is not None
    return [_total(_cofactors(a, y) * t)]


def _cofactors(a: Term, det: Term) -> Term:
    return call(a, "Cofactors", a, det, results=[array(a.dtype, a.shape)])[0]


def _total(x: Term) -> Term:
    return x.emit("Sum", axes=(x.rank - 2, x.rank - 1))


def cofactors(site: Site, cotangents: Tangents) -> Cotangents:
    """By the inverse, so of a singular matrix `LinAlgError`.  The determinant, operand 1, saves
    its cost: it is a function of the matrix."""
    (ct,), (a, _), (y,) = cotangents, site.operands, site.results
    assert ct is not None
    turned = adjoint(inverse(a))
    along = column(column(_total(ct * conjugated(y))))
    return [along * turned - matmul(conjugated(y), matmul(adjoint(conjugated(ct)), turned)), None]


def cofactors_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t, _), (a, _), (y,) = tangents, site.operands, site.results
    if t is None:
        return [None]
    turned = conjugated(adjoint(inverse(a)))
    return [column(column(_total(turned * t))) * y
            - matmul(turned, matmul(conjugated(adjoint(t)), y))]


def _trace(x: Term) -> Term:
    return diagonal(x).emit("Sum", axes=(x.rank - 2,))


def slogdet(site: Site, cotangents: Tangents) -> Cotangents:
    """Of a complex matrix the sign turns as the imaginary part of ``trace(a^-1 da)`` says."""
    (by_sign, by_log), (a,), (sign, _) = cotangents, site.operands, site.results
    factor: Term | None = None if by_log is None else by_log.cast(a.dtype)
    if a.dtype.kind == "c" and by_sign is not None:
        turned = imag(conjugated(sign) * by_sign).cast(a.dtype) * 1j
        factor = turned if factor is None else factor + turned
    if factor is None:
        return [None]
    return [column(column(factor)) * adjoint(inverse(a))]


def slogdet_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (a,), (sign, _) = tangents, site.operands, site.results
    assert t is not None
    change = _trace(solved(a, t))
    if a.dtype.kind != "c":
        return [None, change]
    return [sign * (imag(change).cast(a.dtype) * 1j), real(change)]


declare("LinalgDet", vjp=det, jvp=det_jvp)
declare("Cofactors", vjp=cofactors, jvp=cofactors_jvp)
declare("LinalgSlogdet", vjp=slogdet, jvp=slogdet_jvp)

# -------------------------------------------------------------------------------------- Cholesky


def half_lower(x: Term) -> Term:
    """The lower triangle with half the diagonal: the part of a Hermitian matrix that makes it."""
    return lower(x) - on_diagonal(x) * 0.5


def by_factor(factor: Term, ct: Term, is_lower: bool) -> Term:
    """The cotangent of a matrix, given that of its Cholesky factor."""
    if not is_lower:
        factor, ct = adjoint(factor), adjoint(ct)
    back = inverse(factor)
    middle = half_lower(matmul(adjoint(factor), ct))
    whole = matmul(adjoint(back), matmul(middle, back)) * 0.5
    return of_triangle(whole + adjoint(whole), is_lower)


def factor_tangent(factor: Term, t: Term, is_lower: bool) -> Term:
    """The tangent of the Cholesky factor, given that of the matrix."""
    whole = mirrored(t, is_lower)
    left = factor if is_lower else adjoint(factor)
    back = inverse(left)
    found = matmul(left, half_lower(matmul(back, matmul(whole, adjoint(back)))))
    return found if is_lower else adjoint(found)


def _reads_lower(site: Site) -> bool:
    return not arguments(site, "a").get("upper", False)


def _cholesky(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (y,) = cotangents, site.results
    assert ct is not None
    return [by_factor(y, ct, _reads_lower(site))]


def _cholesky_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (y,) = tangents, site.results
    assert t is not None
    return [factor_tangent(y, t, _reads_lower(site))]


declare("LinalgCholesky", vjp=_cholesky, jvp=_cholesky_jvp)

# -------------------------------------------------------------------------------------------- QR


def qr_by_factors(a: Term, q: Term, r: Term, by_q: Term | None, by_r: Term | None) -> Term:
    """The cotangent of a matrix, given those of ``q`` and ``r``; the first columns decide ``q``."""
    rows, columns = a.shape[-2:]
    by_q, by_r = (x.filled(0) if g is None else g for x, g in ((q, by_q), (r, by_r)))
    if columns <= rows:
        return _qr_square(q, r, by_q, by_r)
    last = _columns_of(a, rows, columns)
    by_last = _columns_of(by_r, rows, columns)
    first = _qr_square(q, _columns_of(r, 0, rows), by_q + matmul(last, adjoint(by_last)),
                       _columns_of(by_r, 0, rows))
    return first.emit("Concat", matmul(q, by_last), axis=a.rank - 1)


def _columns_of(x: Term, first: Any, last: Any) -> Term:
    rank = x.rank
    return x.emit("Slice", starts=(*[0] * (rank - 1), first), steps=(1,) * rank,
                  sizes=(*x.shape[:-1], last - first))


def _qr_square(q: Term, r: Term, by_q: Term, by_r: Term) -> Term:
    middle = matmul(adjoint(q), by_q) - matmul(by_r, adjoint(r))
    turned = strictly_lower(middle - adjoint(middle)) + on_diagonal(imaginary_part(middle))
    return matmul(by_q + matmul(q, turned - middle), adjoint(inverse(r)))


def qr_tangents(a: Term, q: Term, r: Term, t: Term) -> tuple[Term, Term]:
    """The tangents of ``q`` and ``r``, given that of the matrix."""
    rows, columns = a.shape[-2:]
    if columns <= rows:
        return _qr_square_tangents(q, r, t)
    by_q, by_first = _qr_square_tangents(q, _columns_of(r, 0, rows), _columns_of(t, 0, rows))
    by_last = matmul(adjoint(by_q), _columns_of(a, rows, columns)) + matmul(
        adjoint(q), _columns_of(t, rows, columns))
    return by_q, by_first.emit("Concat", by_last, axis=a.rank - 1)


def _qr_square_tangents(q: Term, r: Term, t: Term) -> tuple[Term, Term]:
    scaled = matmul(t, inverse(r))
    inner = matmul(adjoint(q), scaled)
    below = strictly_lower(inner)
    turned = below - adjoint(below) + on_diagonal(imaginary_part(inner))
    return matmul(q, turned - inner) + scaled, upper(matmul(inner - turned, r))


def _qr_factors(site: Site) -> tuple[Term, Term]:
    """``q`` and ``r``, where ``q`` has no more columns than the matrix has rows and columns."""
    (a,), mode = site.operands, arguments(site, "a mode").get("mode", "reduced")
    if mode == "r":
        k = min(a.shape[-2:])
        q, r = call(a, "LinalgQr", a, results=[
            array(a.dtype, (*a.shape[:-1], k)), array(a.dtype, (*a.shape[:-2], k, a.shape[-1]))])
        return q, r
    if mode != "reduced" and (mode != "complete" or a.shape[-2] > a.shape[-1]):
        site.refuse(f"with mode={mode!r} columns of q are any that fit: mode='reduced' has none "
                    "such")
    q, r = site.results
    return q, r


def _qr(site: Site, cotangents: Tangents) -> Cotangents:
    (a,), (q, r) = site.operands, _qr_factors(site)
    by_q, by_r = (None, *cotangents)[-2:]
    return [qr_by_factors(a, q, r, by_q, by_r)]


def _qr_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (a,), (q, r) = tangents, site.operands, _qr_factors(site)
    assert t is not None
    return qr_tangents(a, q, r, t)[-len(site.results):]


declare("LinalgQr", vjp=_qr, jvp=_qr_jvp)

# --------------------------------------------------------------------------- tensors as matrices


def _tensorinv(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a,), (y,) = cotangents, site.operands, site.results
    assert ct is not None
    back, g = (adjoint(_square(x)) for x in (y, ct))
    return [-adjoint(matmul(matmul(adjoint(back), g), adjoint(back))).emit(
        "Reshape", shape=a.shape)]


def _square(x: Term) -> Term:
    """A tensor that has an inverse as a matrix."""
    size, n = 1, 1
    for length in x.shape:
        size *= length
    while n * n < size:
        n += 1
    return x.emit("Reshape", shape=(n, n))


def _tensorinv_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (y,) = tangents, site.results
    assert t is not None
    back = _square(y)
    return [-matmul(back, matmul(_square(t), back)).emit("Reshape", shape=y.shape)]


declare("LinalgTensorinv", vjp=_tensorinv, jvp=_tensorinv_jvp)


def _flat(site: Site) -> tuple[Term, Term, Term]:
    """The matrix, the right-hand side and the solution as a matrix and columns."""
    (a, b), (x,) = site.operands, site.results
    if arguments(site, "a b axes").get("axes") is not None:
        site.refuse("axes: transpose the array first (np.moveaxis)")
    right, solution = (column(v.emit("Reshape", shape=(v.value.type.size,))) for v in (b, x))
    return _square(a), right, solution


def _tensorsolve(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a, b), (matrix, _, x) = cotangents, site.operands, _flat(site)
    assert ct is not None
    g = column(ct.emit("Reshape", shape=(ct.value.type.size,)))
    by_b = solved(adjoint(matrix), g)
    return [(-matmul(by_b, adjoint(x))).emit("Reshape", shape=a.shape),
            by_b.emit("Reshape", shape=b.shape)]


def _tensorsolve_jvp(site: Site, tangents: Tangents) -> Tangents:
    (a, b), (result,), (matrix, _, x) = site.operands, site.results, _flat(site)
    by_a, by_b = site.filled(tangents, [a, b])
    right = column(by_b.emit("Reshape", shape=(b.value.type.size,)))
    t = solved(matrix, right - matmul(_square(by_a), x))
    return [t.emit("Reshape", shape=result.shape)]


declare("LinalgTensorsolve", vjp=_tensorsolve, jvp=_tensorsolve_jvp)

__all__ = [
    "by_factor", "det", "det_jvp", "factor_tangent", "half_lower", "inv", "inv_jvp",
    "qr_by_factors", "qr_tangents", "row", "slogdet", "slogdet_jvp", "solve", "solve_jvp",
]
