"""Every scalar op of the loop IR as LLVM instructions, for one lane or many.

No user value reaches undefined behaviour: division and shifts are guarded, float to integer
conversion is clamped, no flag promises anything about overflow or NaN (see docs/ir.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusec.codegen.vecmath import FUNCTIONS, define

from ..emitter import BOOL, I64, LlvmEmitter, LlvmValue, scalar_type, vector_type
from .division import floor_div, fmod, int_reciprocal, mod, shift
from .half_precision import F16, F32, F64, narrow, narrow_double, widen
from .instructions import binary, both, compare, isnan, lowest_int, select

Emit = Callable[[LlvmEmitter, np.dtype, list[LlvmValue]], LlvmValue]
I32, U64 = np.dtype(np.int32), np.dtype(np.uint64)


def emit_operation(em: LlvmEmitter, op: str, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    """The result of one scalar op; operands of fewer lanes are splatted first."""
    lanes = max(a.lanes for a in args)
    args = [em.splat(a, lanes) for a in args]
    if op not in _ANY_WIDTH and (dtype == F16 or any(a.dtype == F16 for a in args)):
        return _in_single(em, op, dtype, args)
    emit = _OPS.get(op)
    if emit is not None:
        return emit(em, dtype, args)
    if op in FUNCTIONS and dtype.kind == "f":
        return _math_call(em, op, dtype, args)
    raise NotImplementedError(f"internal error: the cpu back end has no scalar op {op!r}")


# Ops that move halves without looking at them.
_ANY_WIDTH = frozenset({"select", "pos", "bitcast"})
# Of two zeros NumPy takes the first one for halves, the second one for wider floats.
_FIRST_OF_EQUALS = frozenset({"maximum", "minimum", "fmax", "fmin"})


def _in_single(em: LlvmEmitter, op: str, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    """An op on halves: computed in float32, its result rounded."""
    if op == "cast" and dtype == F16 and args[0].dtype == F64:
        return narrow_double(em, args[0])
    if op in _FIRST_OF_EQUALS:
        args = args[::-1]
    wide = [widen(em, a) if a.dtype == F16 else a for a in args]
    if dtype != F16:
        return emit_operation(em, op, dtype, wide)
    return narrow(em, emit_operation(em, op, F32, wide))


def supports(op: str, dtype: np.dtype) -> bool:
    """Whether the op has an implementation here for results of this dtype."""
    return op in _OPS or (op in FUNCTIONS and dtype.kind == "f")


def _math_call(em: LlvmEmitter, op: str, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    """A call of our own inlined polynomial."""
    lanes = args[0].lanes
    if lanes not in (1, 4, 8, 16):
        return _by_halves(em, op, dtype, args)
    code = define(op, dtype, lanes)
    _require(em, op, dtype, lanes)
    kind = args[0].type
    text = em.value(f"call fastcc {kind} @{code.symbol}({', '.join(map(str, args))})")
    return LlvmValue(text, dtype, lanes)


def _require(em: LlvmEmitter, op: str, dtype: np.dtype, lanes: int) -> None:
    code = define(op, dtype, lanes)
    if code.symbol in em.functions:
        return
    em.functions[code.symbol] = code.text
    em.declarations.update(code.declarations)
    for need in code.needs:
        _require(em, need, dtype, lanes)


def _by_halves(em: LlvmEmitter, op: str, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    """Wider vectors than the math library offers: two halves."""
    half = args[0].lanes // 2
    parts = []
    for start in (0, half):
        picks = ", ".join(f"i32 {start + k}" for k in range(half))
        piece = [
            LlvmValue(em.value(f"shufflevector {a}, {a.type} poison, <{half} x i32> <{picks}>"),
                      dtype, half)
            for a in args
        ]
        parts.append(_math_call(em, op, dtype, piece))
    picks = ", ".join(f"i32 {k}" for k in range(2 * half))
    text = em.value(f"shufflevector {parts[0]}, {parts[1]}, <{2 * half} x i32> <{picks}>")
    return LlvmValue(text, dtype, 2 * half)


# ------------------------------------------------------------------------------------ operations


def _arithmetic(name: str) -> Emit:
    def emit(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
        prefix = "f" if dtype.kind == "f" else ""
        return binary(em, prefix + name, dtype, *args)

    return emit


def _intrinsic(name: str) -> Emit:
    def emit(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
        return em.intrinsic(name, dtype, args[0].lanes, *args)

    return emit


def _comparison(float_predicate: str, int_predicate: str) -> Emit:
    def emit(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
        kind = args[0].dtype.kind
        if kind == "f":
            return compare(em, float_predicate, *args)
        signed = "" if int_predicate in ("eq", "ne") else "s" if kind == "i" else "u"
        return compare(em, signed + int_predicate, *args)

    return emit


def _logic(name: str) -> Emit:
    return lambda em, dtype, args: binary(em, name, dtype, *args)


def _mul_high(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    """Both factors are extended in sight of the multiplication: one instruction for two lanes."""
    a, b = (_convert(em, "zext", U64, x) for x in args)
    thirty_two = em.splat(LlvmValue("32", U64, 1), a.lanes)
    return _convert(em, "trunc", dtype, binary(
        em, "lshr", U64, binary(em, "mul", U64, a, b), thirty_two))


def _not(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    ones = em.const(dtype, True if dtype == BOOL else -1, args[0].lanes)
    return binary(em, "xor", dtype, args[0], ones)


def _neg(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    if dtype.kind == "f":
        return LlvmValue(em.value(f"fneg {x}"), dtype, x.lanes)
    return binary(em, "sub", dtype, em.const(dtype, 0, x.lanes), x)


def _abs(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    if dtype.kind == "f":
        return em.intrinsic("fabs", dtype, x.lanes, x)
    if dtype.kind == "u":
        return x
    negative = compare(em, "slt", x, em.const(dtype, 0, x.lanes))
    return select(em, negative, _neg(em, dtype, args), x)


def _extremum(larger: bool, keep_nan: bool) -> Emit:
    """maximum/minimum (NaN wins) and fmax/fmin (NaN loses)."""
    def emit(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
        a, b = args
        if dtype.kind != "f":
            signed = "s" if dtype.kind == "i" else "u"
            return select(em, compare(em, signed + ("gt" if larger else "lt"), a, b), a, b)
        best = select(em, compare(em, "ogt" if larger else "olt", a, b), a, b)
        return select(em, isnan(em, a if keep_nan else b), a, best)

    return emit


def _sign(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    zero, one = em.const(dtype, 0, x.lanes), em.const(dtype, 1, x.lanes)
    if dtype.kind == "u":
        return select(em, compare(em, "ne", x, zero), one, zero)
    minus = em.const(dtype, -1, x.lanes)
    greater, less, equal = ("ogt", "olt", "oeq") if dtype.kind == "f" else ("sgt", "slt", "eq")
    rest = select(em, compare(em, equal, x, zero), zero, x)
    below = select(em, compare(em, less, x, zero), minus, rest)
    return select(em, compare(em, greater, x, zero), one, below)


def _heaviside(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x, at_zero = args
    zero, one = em.const(dtype, 0, x.lanes), em.const(dtype, 1, x.lanes)
    step = select(em, compare(em, "olt", x, zero), zero, one)
    value = select(em, compare(em, "oeq", x, zero), at_zero, step)
    return select(em, isnan(em, x), x, value)


def _isinf(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    size = em.intrinsic("fabs", x.dtype, x.lanes, x)
    return compare(em, "oeq", size, em.const(x.dtype, np.inf, x.lanes))


def _isfinite(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    size = em.intrinsic("fabs", x.dtype, x.lanes, x)
    return compare(em, "olt", size, em.const(x.dtype, np.inf, x.lanes))


def _signbit(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    if x.dtype.kind != "f":
        return compare(em, "slt" if x.dtype.kind == "i" else "ult", x,
                        em.const(x.dtype, 0, x.lanes))
    whole = np.dtype(f"i{x.dtype.itemsize}")
    kind = vector_type(scalar_type(whole), x.lanes)
    bits = LlvmValue(em.value(f"bitcast {x} to {kind}"), whole, x.lanes)
    return compare(em, "slt", bits, em.const(whole, 0, x.lanes))


# ------------------------------------------------------------------------------------ conversion


def _cast(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    x = args[0]
    source = x.dtype
    if dtype == BOOL:
        zero = em.const(source, 0, x.lanes)
        return compare(em, "une" if source.kind == "f" else "ne", x, zero)
    if source.kind == "f":
        return _resize_float(em, dtype, x) if dtype.kind == "f" else _float_to_int(em, dtype, x)
    if dtype.kind == "f":
        return _convert(em, "sitofp" if source.kind == "i" else "uitofp", dtype, x)
    return _resize_int(em, dtype, x)


def _convert(em: LlvmEmitter, instruction: str, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    kind = vector_type(scalar_type(dtype), x.lanes)
    return LlvmValue(em.value(f"{instruction} {x} to {kind}"), dtype, x.lanes)


def _bitcast(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    if scalar_type(dtype) == scalar_type(args[0].dtype):
        return LlvmValue(args[0].text, dtype, args[0].lanes)
    return _convert(em, "bitcast", dtype, args[0])


def _resize_float(em: LlvmEmitter, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    if dtype.itemsize == x.dtype.itemsize:
        return x
    wider = dtype.itemsize > x.dtype.itemsize
    return _convert(em, "fpext" if wider else "fptrunc", dtype, x)


def _resize_int(em: LlvmEmitter, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    bits = 1 if x.dtype == BOOL else 8 * x.dtype.itemsize
    if 8 * dtype.itemsize == bits:
        return LlvmValue(x.text, dtype, x.lanes)
    if 8 * dtype.itemsize < bits:
        return _convert(em, "trunc", dtype, x)
    return _convert(em, "sext" if x.dtype.kind == "i" else "zext", dtype, x)


def _float_to_int(em: LlvmEmitter, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    """NumPy's results on x86-64: the lowest value of the conversion's width when out of range."""
    if dtype == np.uint64:
        return _float_to_uint64(em, dtype, x)
    width = I64 if dtype.itemsize == 8 or dtype == np.uint32 else I32
    return _resize_int(em, dtype, _guarded_fptosi(em, width, x))


def _guarded_fptosi(em: LlvmEmitter, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    limit = 2.0 ** (8 * dtype.itemsize - 1)
    low = em.const(x.dtype, -limit, x.lanes)
    high = em.const(x.dtype, limit, x.lanes)
    # In float32 no value lies between -2**31 - 1 and -2**31; in float64 -2147483648.5 truncates.
    slack = x.dtype == np.float64 and dtype.itemsize == 4
    above = em.const(x.dtype, -limit - 1, x.lanes) if slack else low
    inside = both(em, compare(em, "ogt" if slack else "oge", x, above),
                  compare(em, "olt", x, high))
    safe = select(em, inside, x, em.const(x.dtype, 0, x.lanes))
    value = _convert(em, "fptosi", dtype, safe)
    return select(em, inside, value, em.const(dtype, lowest_int(dtype), x.lanes))


def _float_to_uint64(em: LlvmEmitter, dtype: np.dtype, x: LlvmValue) -> LlvmValue:
    half = em.const(x.dtype, 2.0**63, x.lanes)
    is_large = compare(em, "oge", x, half)
    small = _guarded_fptosi(em, I64, x)
    rest = _guarded_fptosi(em, I64, binary(em, "fsub", x.dtype, x, half))
    flipped = binary(em, "xor", I64, rest, em.const(I64, lowest_int(I64), x.lanes))
    result = select(em, is_large, flipped, small)
    return LlvmValue(result.text, dtype, x.lanes)


def _select_op(em: LlvmEmitter, dtype: np.dtype, args: list[LlvmValue]) -> LlvmValue:
    return select(em, *args)


_OPS: dict[str, Emit] = {
    **{name: _arithmetic(name) for name in ("add", "sub", "mul", "div")},
    **{name: _logic(name) for name in ("and", "or", "xor")},
    "not": _not,
    "neg": _neg,
    "abs": _abs,
    "sqrt": _intrinsic("sqrt"),
    "fma": _intrinsic("fma"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "copysign": _intrinsic("copysign"),
    "popcount": _intrinsic("ctpop"),
    "mulhi": _mul_high,
    "maximum": _extremum(larger=True, keep_nan=True),
    "minimum": _extremum(larger=False, keep_nan=True),
    "fmax": _extremum(larger=True, keep_nan=False),
    "fmin": _extremum(larger=False, keep_nan=False),
    "sign": _sign,
    "heaviside": _heaviside,
    "lt": _comparison("olt", "lt"),
    "le": _comparison("ole", "le"),
    "gt": _comparison("ogt", "gt"),
    "ge": _comparison("oge", "ge"),
    "eq": _comparison("oeq", "eq"),
    "ne": _comparison("une", "ne"),
    "isnan": lambda em, dtype, args: isnan(em, args[0]),
    "isinf": _isinf,
    "isfinite": _isfinite,
    "signbit": _signbit,
    "mod": mod,
    "floor_div": floor_div,
    "fmod": fmod,
    "shl": shift(left=True),
    "shr": shift(left=False),
    "int_reciprocal": int_reciprocal,
    "select": _select_op,
    "cast": _cast,
    "bitcast": _bitcast,
}
