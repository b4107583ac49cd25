"""Parts of complex numbers: linear over the reals, not over complex numbers.

Cotangents are gradients for ``Re(sum(conj(u) * v))``, so the real part of a cotangent belongs to
the real part, and the imaginary part to the imaginary part.
"""

from __future__ import annotations

from .protocol import Site, Tangents, declare, linear, sum_to
from .terms import Term, conj, imag, real


def _whole(part: Term, like: Term, op: str) -> Term:
    """The complex number that has this part, and 0 for the other."""
    return like.number(0).emit(op, part)


def _of_real(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), (z,) = cotangents, site.operands
    assert ct is not None
    return [_whole(ct, z, "WithReal")]


def _of_imag(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), (z,) = cotangents, site.operands
    assert ct is not None
    return [_whole(ct, z, "WithImag")]


def _of_conj(site: Site, cotangents: Tangents) -> Tangents:
    (ct,) = cotangents
    assert ct is not None
    return [conj(ct)]


def _of_with_real(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), (z, part) = cotangents, site.operands
    assert ct is not None
    return [sum_to(ct.emit("WithReal", real(ct).number(0)), z.shape),
            sum_to(real(ct), part.shape)]


def _of_with_imag(site: Site, cotangents: Tangents) -> Tangents:
    (ct,), (z, part) = cotangents, site.operands
    assert ct is not None
    return [sum_to(ct.emit("WithImag", imag(ct).number(0)), z.shape),
            sum_to(imag(ct), part.shape)]


declare("Real", vjp=_of_real, jvp=linear)
declare("Imag", vjp=_of_imag, jvp=linear)
declare("Conj", vjp=_of_conj, jvp=linear)
declare("WithReal", vjp=_of_with_real, jvp=linear)
declare("WithImag", vjp=_of_with_imag, jvp=linear)
