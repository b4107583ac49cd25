"""SciPy's matrix equations, and functions of matrices.

Formulas: of functions of matrices R. Mathias, *A chain rule for matrix functions and applications*,
SIAM Journal on Matrix Analysis and Applications 17(3), 1996: ``f([[A, E], [0, A]])`` has the
derivative at ``A`` along ``E`` in its upper right corner.  Of equations both sides are
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable

from ..calls import array, call
from ..matrices.matrices import adjoint, as_like, matmul
from ..protocol import Cotangents, Site, Tangents
from ..terms import Term
from .scipy_calls import RULES, Rules, call_scipy


def _sylvester(site: Site, cotangents: Tangents) -> Cotangents:
    """Of ``a @ x + x @ b = q``."""
    (ct,), (a, b, q), (x,) = cotangents, site.operands, site.results
    assert ct is not None
    back = call_scipy("linalg.solve_sylvester", ct, adjoint(a.cast(x.dtype)),
                      adjoint(b.cast(x.dtype)), ct, shape=ct.shape)
    return [as_like(-matmul(back, adjoint(x)), a), as_like(-matmul(adjoint(x), back), b),
            as_like(back, q)]


def _sylvester_jvp(site: Site, tangents: Tangents) -> Tangents:
    (a, b, _), (x,) = site.operands, site.results
    by_a, by_b, by_q = (t.cast(x.dtype) for t in site.filled(tangents, site.operands))
    right = by_q - matmul(by_a, x) - matmul(x, by_b)
    return [call_scipy("linalg.solve_sylvester", x, a, b, right, shape=x.shape)]


RULES["linalg.solve_sylvester"] = (_sylvester, _sylvester_jvp)


def _lyapunov(name: str, change: Callable[[Term, Term, Term], Term],
              slope: Callable[[Term, Term, Term], Term]) -> Rules:
    """``change(a, x, t)`` is the addend of a tangent of ``a`` to the right side, ``slope(a, x, g)``
    the transpose."""
    def solved_again(a: Term, q: Term) -> Term:
        return call_scipy(f"linalg.{name}", q, a, q, shape=q.shape)

    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), (a, q), (x,) = cotangents, site.operands, site.results
        assert ct is not None
        wide = a.cast(x.dtype)
        back = solved_again(adjoint(wide), ct)
        return [as_like(slope(wide, x, back), a), as_like(back, q)]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        (a, q), (x,) = site.operands, site.results
        by_a, by_q = (t.cast(x.dtype) for t in site.filled(tangents, [a, q]))
        wide = a.cast(x.dtype)
        return [solved_again(wide, by_q + change(wide, x, by_a))]

    return vjp, jvp


RULES["linalg.solve_continuous_lyapunov"] = RULES["linalg.solve_lyapunov"] = _lyapunov(
    "solve_continuous_lyapunov",
    lambda a, x, t: -matmul(t, x) - matmul(x, adjoint(t)),
    lambda a, x, g: -matmul(g, adjoint(x)) - matmul(adjoint(g), x))
RULES["linalg.solve_discrete_lyapunov"] = _lyapunov(
    "solve_discrete_lyapunov",
    lambda a, x, t: matmul(t, matmul(x, adjoint(a))) + matmul(a, matmul(x, adjoint(t))),
    lambda a, x, g: matmul(g, matmul(a, adjoint(x))) + matmul(adjoint(g), matmul(a, x)))

# ---------------------------------------------------------------------------- functions of matrices


def _corner(name: str, like: Term, a: Term, along: Term) -> Term:
    """The derivative of a function of matrices at ``a``, along a direction."""
    n = a.shape[-1]
    top = a.emit("Concat", along, axis=1)
    bottom = a.filled(0).emit("Concat", a, axis=1)
    whole = top.emit("Concat", bottom, axis=0)
    found = call(whole, "Scipy", f"linalg.{name}", whole,
                 results=[array(like.dtype, whole.shape)])[0]
    return found.emit("Slice", starts=(0, n), steps=(1, 1), sizes=(n, n))


def _matrix_function(name: str) -> Rules:
    """The transpose of the derivative at ``a`` is the derivative at the adjoint of ``a``: series of
    these functions have real coefficients."""
    def one(site: Site) -> Term:
        a, y = site.operands[0], site.results[0]
        if a.rank != 2 or len(site.attrs["form"]) > 3 or site.attrs["named"][1:]:
            site.refuse("of one matrix, without other arguments, alone fusec knows the derivative")
        return a.cast(y.dtype)

    def vjp(site: Site, cotangents: Tangents) -> Cotangents:
        (ct,), a = cotangents, one(site)
        assert ct is not None
        return [as_like(_corner(name, ct, adjoint(a), ct), site.operands[0])]

    def jvp(site: Site, tangents: Tangents) -> Tangents:
        (t,), a = tangents, one(site)
        assert t is not None
        return [_corner(name, site.results[0], a, t.cast(a.dtype))]

    return vjp, jvp


for _name in ("expm", "sqrtm", "logm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm"):
    RULES[f"linalg.{_name}"] = _matrix_function(_name)
