"""SciPy's linear systems, and solving with factors: triangular, of Cholesky, LU.

Formulas: those of `linear_algebra`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..calls import array, call
from ..matrices.linear_algebra import by_factor, det, det_jvp, factor_tangent, inv, inv_jvp
from ..matrices.matrices import (
    adjoint,
    as_like,
    conjugated,
    lower,
    matmul,
    mirrored,
    of_triangle,
    solved,
    strictly_lower,
    transposed,
    upper,
)
from ..matrices.norms import norm_rules
from ..matrices.spectral import lstsq, lstsq_jvp, real_of
from ..protocol import Cotangents, Site, Tangents
from ..terms import Term
from .scipy_calls import RULES, arguments_by_name, call_scipy, columns, only

# ---------------------------------------------------------------------------------------- systems


def _triangular(site: Site) -> tuple[Term, Term, Term, dict[str, Any]]:
    """The matrix, both sides as columns, and the arguments that say which system it is."""
    given = arguments_by_name(site, "a b trans lower unit_diagonal")
    trans = given.get("trans", 0)
    how = {"trans": {"N": 0, "T": 1, "C": 2}.get(trans, trans),
           "lower": bool(given.get("lower", False)),
           "unit_diagonal": bool(given.get("unit_diagonal", False))}
    a, x = given["a"].cast(site.results[0].dtype), columns(site.results[0])
    return a, columns(given["b"]).cast(x.dtype), x, how


def _part(g: Term, how: dict[str, Any]) -> Term:
    """The part read of a triangular matrix."""
    turned = g if how["lower"] else transposed(g)
    turned = strictly_lower(turned) if how["unit_diagonal"] else lower(turned)
    return turned if how["lower"] else transposed(turned)


def _as_read(g: Term, trans: int) -> Term:
    """The cotangent of the matrix, given that of it as ``trans`` reads it."""
    return (g, transposed(g), adjoint(g))[trans]


def _solve_triangular(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a, b), (matrix, _, x, how) = cotangents, site.operands, _triangular(site)
    assert ct is not None
    back = _again(matrix, columns(ct), how, is_adjoint=True)
    by_a = _part(_as_read(-matmul(back, adjoint(x)), how["trans"]), how)
    return [as_like(by_a, a), as_like(back.emit("Reshape", shape=b.shape), b)]


def _again(matrix: Term, right: Term, how: dict[str, Any], is_adjoint: bool) -> Term:
    """The same system, or that of the adjoint, with another right-hand side."""
    trans = how["trans"]
    if is_adjoint:
        matrix = conjugated(matrix) if trans == 1 else matrix
        trans = {0: 2, 1: 0, 2: 0}[trans]
    return call_scipy("linalg.solve_triangular", matrix, matrix, right, shape=right.shape,
                      trans=trans, lower=how["lower"], unit_diagonal=how["unit_diagonal"])


def _solve_triangular_jvp(site: Site, tangents: Tangents) -> Tangents:
    matrix, _, x, how = _triangular(site)
    by_a, by_b = site.filled(tangents, site.operands)
    change = _as_read(_part(by_a.cast(x.dtype), how), how["trans"])
    right = columns(by_b).cast(x.dtype) - matmul(change, x)
    t = _again(matrix, right, how, is_adjoint=False)
    return [t.emit("Reshape", shape=site.results[0].shape)]


RULES["linalg.solve_triangular"] = (_solve_triangular, _solve_triangular_jvp)


def _system(site: Site) -> tuple[Term, Callable[[Term], Term], Callable[[Term], Term]]:
    """The whole matrix of a system; the argument's tangent to its own, and the transpose."""
    given = arguments_by_name(
        site, "a b lower overwrite_a overwrite_b check_finite assume_a transposed")
    only(site, given, lower=..., assume_a=..., transposed=(False,))
    kind, is_lower = given.get("assume_a") or "gen", bool(given.get("lower", False))
    a = site.operands[0]
    if kind in ("gen", "general"):
        return a, lambda t: t, lambda g: g
    is_symmetric = kind in ("sym", "symmetric") and a.dtype.kind != "c"
    if not is_symmetric and kind not in ("pos", "her", "positive definite", "hermitian"):
        site.refuse(f"with assume_a={kind!r} fusec has no rule for it")
    return (mirrored(a, is_lower), lambda t: mirrored(t, is_lower),
            lambda g: of_triangle(g, is_lower))


def _solve(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (a, b), (matrix, _, back) = cotangents, site.operands, _system(site)
    assert ct is not None
    x = columns(site.results[0])
    by_b = solved(adjoint(matrix.cast(x.dtype)), columns(ct))
    by_a = back(-matmul(by_b, adjoint(x)))
    return [as_like(by_a, a), as_like(by_b.emit("Reshape", shape=b.shape), b)]


def _solve_jvp(site: Site, tangents: Tangents) -> Tangents:
    (a, b), (y,), (matrix, forward, _) = site.operands, site.results, _system(site)
    by_a, by_b = site.filled(tangents, [a, b])
    change = matmul(forward(by_a).cast(y.dtype), columns(y))
    t = solved(matrix.cast(y.dtype), columns(by_b).cast(y.dtype) - change)
    return [t.emit("Reshape", shape=y.shape)]


RULES["linalg.solve"] = (_solve, _solve_jvp)
RULES["linalg.inv"] = (inv, inv_jvp)
RULES["linalg.det"] = (det, det_jvp)
RULES["linalg.lstsq"] = (lstsq, lstsq_jvp)
RULES["linalg.norm"] = norm_rules("a ord axis keepdims", 1)

# --------------------------------------------------------------------------------------- Cholesky


def _is_lower(site: Site) -> bool:
    return bool(arguments_by_name(site, "a lower").get("lower", False))


def _cholesky(site: Site, cotangents: Tangents) -> Cotangents:
    """Of `cho_factor` the other triangle is nothing in particular."""
    ct, factor, is_lower = cotangents[0], site.results[0], _is_lower(site)
    assert ct is not None
    one = lower if is_lower else upper
    return [by_factor(one(factor), one(ct), is_lower)]


def _cholesky_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), factor, is_lower = tangents, site.results[0], _is_lower(site)
    assert t is not None
    found = factor_tangent((lower if is_lower else upper)(factor), t, is_lower)
    return [found, *[None] * (len(site.results) - 1)]


RULES["linalg.cholesky"] = RULES["linalg.cho_factor"] = (_cholesky, _cholesky_jvp)


def _cho_solve(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (factor, is_lower, b, x) = cotangents, _factored(site)
    assert ct is not None
    back = _cho_again(factor, is_lower, columns(ct))
    whole = -matmul(back, adjoint(columns(x)))
    both = whole + adjoint(whole)
    one = lower if is_lower else upper
    clean = one(factor)
    by_factor_ = one(matmul(both, clean) if is_lower else matmul(clean, both))
    by_b = as_like(back.emit("Reshape", shape=b.shape), b)
    return [as_like(by_factor_, factor), *_no_flag(site), by_b]


def _factored(site: Site) -> tuple[Term, bool, Term, Term]:
    given = arguments_by_name(site, "c_and_lower b")
    pair, (x,) = given["c_and_lower"], site.results
    factor, flag = pair
    return factor.cast(x.dtype), _which_half(site, flag), given["b"], x


def _which_half(site: Site, flag: Any) -> bool:
    """Which half of a factor counts; newer SciPys say it in an array, one number a matrix."""
    if not isinstance(flag, Term):
        return bool(flag)
    node = flag.value.node
    while node.op == "BroadcastTo":
        node = node.inputs[0].node
    if node.op != "Const":
        site.refuse("which half of the factor counts is not known while tracing: fusec has no "
                    "rule for it")
    return bool(node.attrs["value"])


def _no_flag(site: Site) -> list[None]:
    """The stand-in for the derivative by the flag, where that is an operand."""
    return [None] * (len(site.operands) - 2)


def _cho_again(factor: Term, is_lower: bool, right: Term) -> Term:
    return call_scipy("linalg.cho_solve", factor, (factor, is_lower), right, shape=right.shape)


def _cho_solve_jvp(site: Site, tangents: Tangents) -> Tangents:
    factor, is_lower, _, x = _factored(site)
    by_c, *_, by_b = site.filled(tangents, site.operands)
    one = lower if is_lower else upper
    clean, change = one(factor), one(by_c.cast(x.dtype))
    half = matmul(change, adjoint(clean)) if is_lower else matmul(adjoint(clean), change)
    right = columns(by_b).cast(x.dtype) - matmul(half + adjoint(half), columns(x))
    return [_cho_again(factor, is_lower, right).emit("Reshape", shape=x.shape)]


RULES["linalg.cho_solve"] = (_cho_solve, _cho_solve_jvp)

# --------------------------------------------------------------------------------------------- LU


def _unit_lower(lu: Term) -> Term:
    """The lower factor, whose diagonal of ones is not stored."""
    return strictly_lower(lu) + _identity(lu)


def _identity(x: Term) -> Term:
    return lower(upper(x.filled(1)))


def _by_lu(left: Term, right: Term, by_left: Term, by_right: Term) -> Term:
    """The cotangent of the matrix ``left @ right``, whose factors' these are."""
    middle = strictly_lower(matmul(adjoint(left), by_left)) + upper(
        matmul(by_right, adjoint(right)))
    inner = solved(adjoint(left), middle)
    return adjoint(solved(right, adjoint(inner)))


def _permutation(a: Term) -> Term:
    """``p`` of ``a = p @ l @ u``."""
    n = a.shape[-1]
    factor = array(a.dtype, (n, n))
    p, _, _ = call(a, "Scipy", "linalg.lu", a, results=[
        array(real_of(a.dtype), (n, n)), factor, factor])
    return p.cast(a.dtype)


def _square_only(site: Site) -> Term:
    a = site.operands[0]
    if a.rank != 2 or a.shape[0] != a.shape[1]:
        site.refuse("of factors of one square matrix alone fusec knows the derivative")
    return a


def _lu_factor(site: Site, cotangents: Tangents) -> Cotangents:
    ct, a, lu = cotangents[0], _square_only(site), site.results[0]
    assert ct is not None
    inner = _by_lu(_unit_lower(lu), upper(lu), strictly_lower(ct), upper(ct))
    return [matmul(_permutation(a), inner)]


def _lu_tangents(a: Term, left: Term, right: Term, t: Term) -> tuple[Term, Term]:
    moved = matmul(transposed(_permutation(a)), t)
    inner = adjoint(solved(adjoint(right), adjoint(solved(left, moved))))
    return matmul(left, strictly_lower(inner)), matmul(upper(inner), right)


def _lu_factor_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), a, lu = tangents, _square_only(site), site.results[0]
    assert t is not None
    by_left, by_right = _lu_tangents(a, _unit_lower(lu), upper(lu), t)
    return [by_left + by_right, None]


RULES["linalg.lu_factor"] = (_lu_factor, _lu_factor_jvp)


def _lu(site: Site, cotangents: Tangents) -> Cotangents:
    if len(site.results) != 3 or site.attrs["named"][1:] or len(site.attrs["form"]) > 3:
        site.refuse("with permute_l or p_indices: take the three factors")
    _square_only(site)
    p, left, right = site.results
    p = p.cast(left.dtype)
    _, by_left, by_right = site.filled(cotangents, site.results)
    return [matmul(p, _by_lu(left, right, by_left, by_right))]


def _lu_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), a = tangents, _square_only(site)
    assert t is not None
    if len(site.results) != 3:
        site.refuse("with permute_l or p_indices: take the three factors")
    return [None, *_lu_tangents(a, *site.results[1:], t)]


RULES["linalg.lu"] = (_lu, _lu_jvp)


def _lu_system(site: Site) -> tuple[Term, Term, Term, Term, bool]:
    """Factors, pivots, both sides as columns, and whether it is the adjoint's system."""
    given = arguments_by_name(site, "lu_and_piv b trans")
    lu, pivots = given["lu_and_piv"]
    x, trans = site.results[0], int(given.get("trans", 0))
    if trans == 1 and x.dtype.kind == "c":
        site.refuse("trans=1 of complex factors: solve with the factors of the transpose")
    return lu.cast(x.dtype), pivots, columns(given["b"]).cast(x.dtype), columns(x), trans != 0


def _lu_again(lu: Term, pivots: Term, right: Term, is_adjoint: bool) -> Term:
    return call_scipy("linalg.lu_solve", lu, (lu, pivots), right, trans=2 if is_adjoint else 0,
                      shape=right.shape)


def _through_adjoint(lu: Term, b: Term) -> Term:
    """``l^-H @ u^-H @ b``: the solution for the adjoint, its rows as the factors have them.

    Of ``p @ l @ u`` the matrix ``p`` moves rows, of which nobody has to know.
    """
    return solved(adjoint(_unit_lower(lu)), solved(adjoint(upper(lu)), b))


def _lu_solve(site: Site, cotangents: Tangents) -> Cotangents:
    (ct,), (lu, pivots, b, x, is_adjoint) = cotangents, _lu_system(site)
    assert ct is not None
    ct = columns(ct)
    back = _lu_again(lu, pivots, ct, not is_adjoint)
    by_inner = -matmul(_through_adjoint(lu, b), adjoint(back)) if is_adjoint else -matmul(
        _through_adjoint(lu, ct), adjoint(x))
    by_lu = strictly_lower(matmul(by_inner, adjoint(upper(lu)))) + upper(
        matmul(adjoint(_unit_lower(lu)), by_inner))
    last = site.operands[-1]
    found = {0: by_lu, len(site.operands) - 1: back.emit("Reshape", shape=last.shape)}
    return [as_like(found[k], v) if k in found else None for k, v in enumerate(site.operands)]


def _lu_solve_jvp(site: Site, tangents: Tangents) -> Tangents:
    lu, pivots, b, x, is_adjoint = _lu_system(site)
    by_lu, by_b = (site.filled([tangents[k]], [site.operands[k]])[0].cast(x.dtype)
                   for k in (0, len(tangents) - 1))
    left, right = _unit_lower(lu), upper(lu)
    change = matmul(strictly_lower(by_lu), right) + matmul(left, upper(by_lu))
    shape = site.results[0].shape
    if is_adjoint:
        moved = columns(by_b) - matmul(adjoint(change), _through_adjoint(lu, b))
        return [_lu_again(lu, pivots, moved, True).emit("Reshape", shape=shape)]
    t = _lu_again(lu, pivots, columns(by_b), False) - solved(
        right, solved(left, matmul(change, x)))
    return [t.emit("Reshape", shape=shape)]


RULES["linalg.lu_solve"] = (_lu_solve, _lu_solve_jvp)

