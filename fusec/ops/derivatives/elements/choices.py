"""Functions that choose or have corners: extrema, absolute values, signs, piecewise constants.

At a corner the derivative is the mean of those beside it, as JAX has it: half for each of two equal
operands of `np.maximum`, 0 for ``abs`` at 0.
"""

from __future__ import annotations

from ..protocol import Site, Tangents, declare, refused, zero_by_nature
from ..terms import Term, conj, real, sign, where


def _extremum(own: Term, other: Term, y: Term) -> Term:
    """1 where the result is the operand, half where it is the other one, too."""
    return where(y.equals(own), where(y.equals(other), own.number(0.5), 1), 0)


for _name in ("Maximum", "Minimum", "Fmax", "Fmin"):
    declare(_name, partials=(_extremum, lambda a, b, y: _extremum(b, a, y)))


def _direction(z: Term, size: Term) -> Term:
    """``z / abs(z)``; 0 at 0.  Of a real number its sign."""
    if z.dtype.kind != "c":
        return sign(z)
    nothing = size.equals(0)
    return where(nothing, 0, z / where(nothing, 1, size).cast(z.dtype))


def _abs(site: Site, cotangents: Tangents) -> Tangents:
    """``abs`` of a complex number is no holomorphic function: it grows in the number's direction.
    """
    (ct,), (z,), (size,) = cotangents, site.operands, site.results
    assert ct is not None
    return [ct.cast(z.dtype) * _direction(z, size)]


def _abs_jvp(site: Site, tangents: Tangents) -> Tangents:
    (t,), (z,), (size,) = tangents, site.operands, site.results
    assert t is not None
    along = _direction(z, size)
    return [real(conj(along) * t) if z.dtype.kind == "c" else along * t]


def _turned(site: Site, tangents: Tangents) -> Tangents:
    """Of ``z / abs(z)``: of a tangent, or cotangent, the part across ``z``, by the size of ``z``.

    Its matrix is symmetric.  Of a real number the sign is constant; 0 at 0.
    """
    (t,), (z,), (along,) = tangents, site.operands, site.results
    if z.dtype.kind != "c" or t is None:
        return [None]
    size = z.emit("Abs")
    nothing = size.equals(0)
    across = t - along * real(conj(along) * t).cast(z.dtype)
    return [where(nothing, 0, across / where(nothing, 1, size).cast(z.dtype))]


def _copysign(a: Term, b: Term, y: Term) -> Term:
    """1 where the sign stays and -1 where it changes; 0 at 0, as of ``abs``."""
    return sign(a) * b.number(1).emit("Copysign", b)


declare("Abs", vjp=_abs, jvp=_abs_jvp)
declare("Fabs", partials=(lambda x, y: sign(x),))
declare("Sign", vjp=_turned, jvp=_turned)
declare("Copysign", partials=(_copysign, lambda a, b, y: 0))
declare("Heaviside", partials=(
    lambda a, b, y: 0, lambda a, b, y: where(a.equals(0), a.number(1), 0)))

zero_by_nature("Floor", "Ceil", "Trunc", "Rint")
# Truth values and integers: neighbouring operands have the same.
zero_by_nature(
    "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "IsNan", "IsInf",
    "IsFinite", "Signbit", "LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot", "BitAnd",
    "BitOr", "BitXor", "Invert", "ShiftLeft", "ShiftRight", "PopulationCount", "MulHigh",
    "CheckIndex", "Verify")
refused("the bits of a number say nothing of its neighbours", "Reinterpret")
zero_by_nature(
    "Argsort", "Lexsort", "Argpartition", "Searchsorted", "Digitize", "UnravelIndex",
    "RavelMultiIndex", "Isin", "Nanargmin", "Nanargmax", "Packbits", "Unpackbits", "Nonzero",
    "Flatnonzero", "Argwhere", "LinalgMatrixRank")
