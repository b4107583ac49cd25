"""SciPy's orthogonal factors, eigenvalues and singular values: the formulas of `spectral`."""

from __future__ import annotations

from typing import Any

from ..matrices.linear_algebra import qr_by_factors, qr_tangents
from ..matrices.spectral import (
    by_pinv,
    eigh_by_values,
    eigh_of,
    eigh_tangents,
    pinv_tangent,
    svd_by_values,
    svd_tangents,
    thin_svd,
)
from ..protocol import Cotangents, Site, Tangents
from ..terms import Term
from .scipy_calls import RULES, arguments_by_name, only


def _qr_factors(site: Site) -> tuple[Term, Term, Term]:
    given = arguments_by_name(site, "a overwrite_a lwork mode pivoting")
    only(site, given, mode=("full", "economic", "r"), lwork=..., pivoting=(False,))
    a, mode = site.operands[0], given.get("mode", "full")
    if mode == "r" or (mode == "full" and a.shape[-2] > a.shape[-1]):
        site.refuse("mode='economic' has no columns that are any that fit")
    q, r = site.results[:2]
    return a, q, r


def _qr(site: Site, cotangents: Tangents) -> Cotangents:
    return [qr_by_factors(*_qr_factors(site), *cotangents[:2])]


def _qr_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,) = tangents
    assert t is not None
    return qr_tangents(*_qr_factors(site), t)


RULES["linalg.qr"] = (_qr, _qr_jvp)


def _eigh_given(site: Site) -> tuple[bool, bool]:
    """Whether the lower triangle is read, and whether eigenvalues alone are asked for."""
    given = arguments_by_name(
        site, "a b lower eigvals_only overwrite_a overwrite_b type check_finite "
        "subset_by_index subset_by_value driver")
    only(site, given, lower=..., eigvals_only=..., driver=..., type=(1,))
    if given.get("b") is not None:
        site.refuse("with b: of ordinary eigenvalues alone fusec knows the derivative")
    return bool(given.get("lower", True)), len(site.results) == 1


def _eigh(site: Site, cotangents: Tangents) -> Cotangents:
    is_lower, is_alone = _eigh_given(site)
    w, v = eigh_of(site.operands[0], is_lower) if is_alone else site.results
    by_w, by_v = (cotangents[0], None) if is_alone else cotangents
    return [eigh_by_values(v, w, by_w, by_v, is_lower)]


def _eigh_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (is_lower, is_alone) = tangents, _eigh_given(site)
    assert t is not None
    w, v = eigh_of(site.operands[0], is_lower) if is_alone else site.results
    return eigh_tangents(v, w, t, is_lower)[:len(site.results)]


RULES["linalg.eigh"] = (_eigh, _eigh_jvp)


def _eigvalsh_site(site: Site) -> bool:
    given = arguments_by_name(site, "a b lower")
    only(site, given, lower=..., driver=..., type=(1,))
    return bool(given.get("lower", True))


def _eigvalsh(site: Site, cotangents: Tangents) -> Cotangents:
    w, v = eigh_of(site.operands[0], _eigvalsh_site(site))
    return [eigh_by_values(v, w, cotangents[0], None, _eigvalsh_site(site))]


def _eigvalsh_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,) = tangents
    assert t is not None
    w, v = eigh_of(site.operands[0], _eigvalsh_site(site))
    return [eigh_tangents(v, w, t, _eigvalsh_site(site))[0]]


RULES["linalg.eigvalsh"] = (_eigvalsh, _eigvalsh_jvp)


def _svd_factors(site: Site) -> Any:
    given = arguments_by_name(site, "a full_matrices compute_uv")
    a = site.operands[0]
    if len(site.results) == 1:
        return thin_svd(a)
    if a.shape[-2] != a.shape[-1] and given.get("full_matrices", True):
        site.refuse("full_matrices=False has no vectors that are any that fit")
    return site.results


def _svd(site: Site, cotangents: Tangents) -> Cotangents:
    given = cotangents if len(cotangents) == 3 else (None, cotangents[0], None)
    return [svd_by_values(*_svd_factors(site), *given)]


def _svd_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,) = tangents
    assert t is not None
    u, s, vh = _svd_factors(site)
    found = svd_tangents(u, s, vh, t)
    return found if len(site.results) == 3 else [found[1]]


RULES["linalg.svd"] = RULES["linalg.svdvals"] = (_svd, _svd_jvp)


def _pinv(site: Site, cotangents: Tangents) -> Cotangents:
    ct, a, p = cotangents[0], site.operands[0], site.results[0]
    assert ct is not None
    return [by_pinv(a, p, ct)]


def _pinv_jvp(site: Site, tangents: Tangents) -> Tangents:
    t, a, p = tangents[0], site.operands[0], site.results[0]
    assert t is not None
    return [pinv_tangent(a, p, t), *[None] * (len(site.results) - 1)]


RULES["linalg.pinv"] = (_pinv, _pinv_jvp)

