"""Half precision: operations run in float32 and are rounded after each one, as NumPy does.

x86 converts between half and single in hardware where it has F16C; elsewhere integer arithmetic
does (`WITHOUT_F16C` forces it, for tests).  float64 goes to half through float32 rounded to odd,
which rounds once in the end (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded
sums", IEEE Trans. Computers 57 (2008), section 3).
"""

from __future__ import annotations

import numpy as np

from ...machine_code.llvm import has_feature
from ..emitter import LlvmEmitter, LlvmValue, vector_type
from .instructions import binary, compare, select

F16, F32, F64 = (np.dtype(f"f{n}") for n in (2, 4, 8))
U16, U32 = np.dtype(np.uint16), np.dtype(np.uint32)
WITHOUT_F16C = False


def _hardware() -> bool:
    return has_feature("f16c") and not WITHOUT_F16C


def widen(em: LlvmEmitter, x: LlvmValue) -> LlvmValue:
    """Half to single: exact."""
    if _hardware():
        return _converted(em, "fpext", F32, "float", x)
    bits = _converted(em, "zext", U32, "i32", _bits(em, U16, "i16", x))
    magnitude = binary(em, "and", U32, bits, em.const(U32, 0x7FFF, x.lanes))
    sign = binary(em, "shl", U32, binary(em, "and", U32, bits, em.const(U32, 0x8000, x.lanes)),
                  em.const(U32, 16, x.lanes))
    shifted = binary(em, "shl", U32, magnitude, em.const(U32, 13, x.lanes))
    # 2**112 moves the exponent from half's bias to single's, for subnormals too.
    scaled = binary(em, "fmul", F32, _bits(em, F32, "float", shifted),
                    em.const(F32, 2.0 ** 112, x.lanes))
    finite = _bits(em, U32, "i32", scaled)
    special = binary(em, "or", U32, shifted, em.const(U32, 0x7F800000, x.lanes))
    is_special = compare(em, "uge", magnitude, em.const(U32, 0x7C00, x.lanes))
    signed = binary(em, "or", U32, select(em, is_special, special, finite), sign)
    return _bits(em, F32, "float", signed)


def narrow(em: LlvmEmitter, x: LlvmValue) -> LlvmValue:
    """Single to half, to nearest even."""
    if _hardware():
        return _converted(em, "fptrunc", F16, "half", x)
    lanes = x.lanes
    bits = _bits(em, U32, "i32", x)
    sign = binary(em, "and", U32, bits, em.const(U32, 0x80000000, lanes))
    magnitude = binary(em, "xor", U32, bits, sign)
    # Subnormal halves: adding 0.5 rounds at half's last place.
    small = binary(em, "fadd", F32, _bits(em, F32, "float", magnitude), em.const(F32, 0.5, lanes))
    subnormal = binary(em, "sub", U32, _bits(em, U32, "i32", small),
                       em.const(U32, 0x3F000000, lanes))
    odd = binary(em, "and", U32, binary(em, "lshr", U32, magnitude, em.const(U32, 13, lanes)),
                 em.const(U32, 1, lanes))
    biased = binary(em, "add", U32, magnitude, em.const(U32, 0xC8000FFF, lanes))
    normal = binary(em, "lshr", U32, binary(em, "add", U32, biased, odd),
                    em.const(U32, 13, lanes))
    nan = compare(em, "ugt", magnitude, em.const(U32, 0x7F800000, lanes))
    large = select(em, nan, em.const(U32, 0x7E00, lanes), em.const(U32, 0x7C00, lanes))
    is_large = compare(em, "uge", magnitude, em.const(U32, 0x47800000, lanes))
    is_small = compare(em, "ult", magnitude, em.const(U32, 0x38800000, lanes))
    half = select(em, is_large, large, select(em, is_small, subnormal, normal))
    half = binary(em, "or", U32, half, binary(em, "lshr", U32, sign, em.const(U32, 16, lanes)))
    return _bits(em, F16, "half", _converted(em, "trunc", U16, "i16", half))


def narrow_double(em: LlvmEmitter, x: LlvmValue) -> LlvmValue:
    """Double to half, rounded once."""
    lanes = x.lanes
    single = _converted(em, "fptrunc", F32, "float", x)
    back = _converted(em, "fpext", F64, "double", single)
    bits = _bits(em, U32, "i32", single)
    one = em.const(U32, 1, lanes)
    grown = compare(em, "ogt", em.intrinsic("fabs", F64, lanes, back),
                    em.intrinsic("fabs", F64, lanes, x))
    cut = select(em, grown, binary(em, "sub", U32, bits, one), bits)
    odd = binary(em, "or", U32, cut, one)
    is_inexact = compare(em, "one", back, x)  # false for NaN
    return narrow(em, _bits(em, F32, "float", select(em, is_inexact, odd, bits)))


def _converted(
    em: LlvmEmitter, instruction: str, dtype: np.dtype, kind: str, x: LlvmValue
) -> LlvmValue:
    text = em.value(f"{instruction} {x} to {vector_type(kind, x.lanes)}")
    return LlvmValue(text, dtype, x.lanes)


def _bits(em: LlvmEmitter, dtype: np.dtype, kind: str, x: LlvmValue) -> LlvmValue:
    return _converted(em, "bitcast", dtype, kind, x)


__all__ = ["F16", "F32", "F64", "narrow", "narrow_double", "widen"]
