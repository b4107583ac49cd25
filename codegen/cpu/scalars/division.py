"""Division, remainders and shifts, guarded: no operand reaches LLVM's undefined behaviour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..emitter import BOOL, UNLIKELY, LlvmEmitter, LlvmValue
from .instructions import binary, both, compare, either, lowest_int, select

Emit = Callable[[LlvmEmitter, np.dtype, list[LlvmValue]], LlvmValue]


def _int_divide(
    em: LlvmEmitter, dtype: np.dtype, a: LlvmValue, b: LlvmValue
) -> tuple[LlvmValue, LlvmValue]:
    """Floor quotient and remainder; both 0 where b is 0, and MIN, 0 for MIN / -1."""
    lanes = a.lanes
    zero, one = em.const(dtype, 0, lanes), em.const(dtype, 1, lanes)
    by_zero = compare(em, "eq", b, zero)
    unsafe = by_zero
    if dtype.kind == "i":
        lowest = compare(em, "eq", a, em.const(dtype, lowest_int(dtype), lanes))
        minus = compare(em, "eq", b, em.const(dtype, -1, lanes))
        unsafe = either(em, by_zero, both(em, lowest, minus))
    safe = select(em, unsafe, one, b)
    quotient = binary(em, "sdiv" if dtype.kind == "i" else "udiv", dtype, a, safe)
    remainder = binary(em, "sub", dtype, a, binary(em, "mul", dtype, quotient, safe))
    if dtype.kind == "i":
        mixed = compare(em, "slt", binary(em, "xor", dtype, remainder, b), zero)
        fix = both(em, compare(em, "ne", remainder, zero), mixed)
        quotient = binary(em, "sub", dtype, quotient, select(em, fix, one, zero))
        remainder = binary(em, "add", dtype, remainder, select(em, fix, b, zero))
    return select(em, by_zero, zero, quotient), select(em, by_zero, zero, remainder)


def _float_rest(em: LlvmEmitter, dtype: np.dtype, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """C's fmod, exactly, without its loop where the quotient has no more bits than a number.

    Let n be the whole part of the true quotient.  The rounded quotient, truncated, is n or n + 1.
    So the remainder that it leaves lies between -b and b and is a multiple of b's last place: the
    fused multiply-add does not round, nor does adding b.  Larger quotients, infinities and NaN are
    left to the library.
    """
    lanes, zero = a.lanes, em.const(dtype, 0, a.lanes)
    x, y = (em.intrinsic("fabs", dtype, lanes, v) for v in (a, b))
    ratio = binary(em, "fdiv", dtype, x, y)
    whole = em.intrinsic("trunc", dtype, lanes, ratio)
    left = em.intrinsic("fma", dtype, lanes, _negative(em, dtype, whole), y, x)
    below = compare(em, "olt", left, zero)
    rest = select(em, below, binary(em, "fadd", dtype, left, y), left)
    rest = select(em, compare(em, "olt", x, y), x, rest)  # also where y is infinite
    slot = em.alloca(rest.type, "rest")
    em.line(f"store {em.intrinsic('copysign', dtype, lanes, rest, a)}, ptr {slot}")
    fits = compare(em, "olt", ratio, em.const(dtype, 2.0 ** (np.finfo(dtype).nmant + 1), lanes))
    with em.branch(_any_false(em, fits), UNLIKELY):
        em.line(f"store {binary(em, 'frem', dtype, a, b)}, ptr {slot}")
    return LlvmValue(em.value(f"load {rest.type}, ptr {slot}"), dtype, lanes)


def _negative(em: LlvmEmitter, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    return LlvmValue(em.value(f"fneg {x}"), dtype, x.lanes)


def _any_false(em: LlvmEmitter, mask: LlvmValue) -> str:
    all_true = mask.text
    if mask.lanes > 1:
        all_true = em.intrinsic_of_vector("vector.reduce.and", mask).text
    return em.value(f"xor i1 {all_true}, true")


def _float_mod(
    em: LlvmEmitter, dtype: np.dtype, a: LlvmValue, b: LlvmValue
) -> tuple[LlvmValue, LlvmValue]:
    """C's fmod and Python's modulo, which has the sign of b (NumPy's ``npy_divmod``)."""
    lanes = a.lanes
    zero = em.const(dtype, 0, lanes)
    rest = _float_rest(em, dtype, a, b)
    nonzero = compare(em, "une", rest, zero)
    mixed = binary(em, "xor", BOOL, compare(em, "olt", b, zero), compare(em, "olt", rest, zero))
    shifted = select(em, mixed, binary(em, "fadd", dtype, rest, b), rest)
    signed_zero = em.intrinsic("copysign", dtype, lanes, zero, b)
    python = select(em, nonzero, shifted, signed_zero)
    by_zero = compare(em, "oeq", b, zero)
    return rest, select(em, by_zero, rest, python)


def mod(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    divide = _float_mod if dtype.kind == "f" else _int_divide
    return divide(em, dtype, *args)[1]


def floor_div(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    a, b = args
    if dtype.kind != "f":
        return _int_divide(em, dtype, a, b)[0]
    lanes = a.lanes
    zero, one = em.const(dtype, 0, lanes), em.const(dtype, 1, lanes)
    rest, _ = _float_mod(em, dtype, a, b)
    exact = binary(em, "fdiv", dtype, binary(em, "fsub", dtype, a, rest), b)
    mixed = binary(em, "xor", BOOL, compare(em, "olt", b, zero), compare(em, "olt", rest, zero))
    fix = both(em, compare(em, "une", rest, zero), mixed)
    exact = binary(em, "fsub", dtype, exact, select(em, fix, one, zero))
    floor = em.intrinsic("floor", dtype, lanes, exact)
    over = binary(em, "fsub", dtype, exact, floor)
    half = compare(em, "ogt", over, em.const(dtype, 0.5, lanes))
    rounded = select(em, half, binary(em, "fadd", dtype, floor, one), floor)
    quotient = binary(em, "fdiv", dtype, a, b)
    none = em.intrinsic("copysign", dtype, lanes, zero, quotient)
    result = select(em, compare(em, "une", exact, zero), rounded, none)
    return select(em, compare(em, "oeq", b, zero), quotient, result)


def shift(left: bool) -> Emit:
    """Shifts by the width or more give 0, or the sign for signed right shifts."""
    def emit(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
        a, b = args
        lanes, bits = a.lanes, 8 * dtype.itemsize
        inside = compare(em, "ult", b, em.const(dtype, bits, lanes))
        zero = em.const(dtype, 0, lanes)
        if not left and dtype.kind == "i":
            capped = select(em, inside, b, em.const(dtype, bits - 1, lanes))
            return binary(em, "ashr", dtype, a, capped)
        safe = select(em, inside, b, zero)
        shifted = binary(em, "shl" if left else "lshr", dtype, a, safe)
        return select(em, inside, shifted, zero)

    return emit


def int_reciprocal(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    """1/x truncated: ±1 for ±1, else 0; 1/0 is infinity as `_float_to_int` converts it."""
    x, lanes = args[0], args[0].lanes
    zero, one = em.const(dtype, 0, lanes), em.const(dtype, 1, lanes)
    result = select(em, compare(em, "eq", x, one), one, zero)
    if dtype.kind == "i":
        minus = em.const(dtype, -1, lanes)
        result = select(em, compare(em, "eq", x, minus), minus, result)
    lowest = lowest_int(dtype) if dtype.itemsize >= 4 else 0
    return select(em, compare(em, "eq", x, zero), em.const(dtype, lowest, lanes), result)


def fmod(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    if dtype.kind == "f":
        return _float_rest(em, dtype, *args)
    return _int_fmod(em, dtype, *args)


def _int_fmod(em: LlvmEmitter, dtype: np.dtype, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """C's remainder, with the sign of a; 0 where b is 0."""
    lanes = a.lanes
    zero = em.const(dtype, 0, lanes)
    by_zero = compare(em, "eq", b, zero)
    unsafe = by_zero
    if dtype.kind == "i":
        unsafe = either(em, by_zero, compare(em, "eq", b, em.const(dtype, -1, lanes)))
    safe = select(em, unsafe, em.const(dtype, 1, lanes), b)
    rest = binary(em, "srem" if dtype.kind == "i" else "urem", dtype, a, safe)
    return select(em, unsafe, zero, rest)
