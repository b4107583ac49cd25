"""Scalar ops of the loop IR as Python text, and the helper functions some of them need."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import InternalError
from fusec.ops.calls.scalar_calls import CALLS, FUNCTIONS

from ..kernels.loop_ir import Expr
from . import source_special

Text = tuple[str, tuple[str, ...]]  # an expression and the helpers it calls

# Helpers take and give values of one dtype; Numba compiles one version per dtype.
HELPERS = {
    "check_index": '''
def check_index(i, size):
    """The index, wrapped when it is negative."""
    wrapped = i + size if i < 0 else i
    if wrapped < 0 or wrapped >= size:
        raise IndexError("an index is out of bounds")
    return wrapped
''',
    "maximum": '''
def maximum(a, b):
    """The larger one; NaN if either is."""
    return a if a > b or a != a else b
''',
    "minimum": '''
def minimum(a, b):
    """The smaller one; NaN if either is."""
    return a if a < b or a != a else b
''',
    "fmax": '''
def fmax(a, b):
    """The larger one that is not NaN."""
    return a if a > b or b != b else b
''',
    "fmin": '''
def fmin(a, b):
    """The smaller one that is not NaN."""
    return a if a < b or b != b else b
''',
    "floor_mod": '''
def floor_mod(a, b):
    """The remainder with the sign of b."""
    rest = np.fmod(a, b)
    if b == 0:
        return rest
    if rest == 0:
        return np.copysign(rest, b)
    return rest + b if (b < 0) != (rest < 0) else rest
''',
    "floor_divide": '''
def floor_divide(a, b):
    """The floor of a / b, computed from the exact remainder as NumPy does."""
    if isinstance(a, np.float16):  # in single precision
        return np.float16(floor_divide(np.float32(a), np.float32(b)))
    if b == 0:
        return a / b
    rest = np.fmod(a, b)
    exact = (a - rest) / b
    if rest != 0 and (b < 0) != (rest < 0):
        exact = exact - rest / rest
    if exact == 0:
        return np.copysign(exact, a / b)
    whole = np.floor(exact)
    return np.ceil(exact) if exact - whole > 0.5 else whole
''',
    "int_floor_divide": '''
def int_floor_divide(a, b):
    """a // b; 0 where b is 0, and -a (which wraps) where b is -1."""
    if b == 0:
        return b
    return b * a if b + 1 == 0 else a // b
''',
    "int_floor_mod": '''
def int_floor_mod(a, b):
    """a % b with the sign of b; 0 where b is 0 or -1."""
    return a * 0 if b == 0 or b + 1 == 0 else a % b
''',
    "int_fmod": '''
def int_fmod(a, b):
    """The remainder with the sign of a; 0 where b is 0 or -1."""
    if b == 0 or b + 1 == 0:
        return a * 0
    rest = a % b
    return rest - b if rest != 0 and (a < 0) != (b < 0) else rest
''',
    "unsigned_divide": '''
def unsigned_divide(a, b):
    """a // b; 0 where b is 0."""
    return b if b == 0 else a // b
''',
    "unsigned_mod": '''
def unsigned_mod(a, b):
    """a % b; 0 where b is 0."""
    return b if b == 0 else a % b
''',
    "popcount": '''
def popcount(a):
    """How many bits are set: each round clears the lowest."""
    count = 0
    while a != 0:
        a = a & (a - a // a)
        count += 1
    return count
''',
    "mulhi": '''
def mulhi(a, b):
    """The upper half of the product of two uint32."""
    return np.uint32((np.uint64(a) * np.uint64(b)) >> np.uint64(32))
''',
    "shift_left": '''
def shift_left(a, b, bits):
    """a << b; 0 for counts outside 0 to bits - 1."""
    return a << b if b >= 0 and b < bits else a ^ a
''',
    "shift_right": '''
def shift_right(a, b, bits):
    """a >> b; only the sign is left for counts outside 0 to bits - 1."""
    if b >= 0 and b < bits:
        return a >> b
    return ~(a ^ a) if a < 0 else a ^ a
''',
    "to_int32": '''
def to_int32(a):
    """The float truncated; the lowest int32 when out of range."""
    return np.int32(a) if a > -2147483649.0 and a < 2147483648.0 else np.int32(-2147483648)
''',
    "to_int64": '''
def to_int64(a):
    """The float truncated; the lowest int64 when out of range."""
    inside = a >= -9223372036854775808.0 and a < 9223372036854775808.0
    return np.int64(a) if inside else np.int64(-9223372036854775808)
''',
    "to_uint64": '''
def to_uint64(a):
    """The float truncated; negative ones wrap, 2**63 when below and 0 when above the range."""
    if a >= 18446744073709551616.0:
        return np.uint64(0)
    if a >= 9223372036854775808.0:
        return np.uint64(a)
    if a >= -9223372036854775808.0:
        return np.uint64(np.int64(a))
    return np.uint64(9223372036854775808)
''',
    **source_special.HELPERS,
}

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}
_ARITHMETIC = frozenset({"add", "sub", "mul", "and", "or", "xor"})
_NUMPY = {
    name: name for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin",
        "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
        "hypot", "sqrt", "cbrt", "floor", "ceil", "trunc", "rint", "copysign", "isnan", "isinf",
        "isfinite", "fmod", "signbit",
    )
} | {"pow": "power"}


class Literal(enum.Enum):
    """``PLAIN``: as short as the operand beside it allows; ``TYPED``: a number of its dtype."""

    PLAIN = enum.auto()
    TYPED = enum.auto()


def type_name(dtype: np.dtype) -> str:
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def literal(dtype: np.dtype, value: Any, form: Literal) -> str:
    """A constant of this dtype; float64 and int64 may be plain Python numbers."""
    if dtype.kind == "b":
        return str(bool(value))
    if dtype.kind == "f":
        number = float(dtype.type(value))
        text = repr(number) if math.isfinite(number) else _nonfinite(number)
    else:
        text = str(int(value))
    if form is Literal.PLAIN and dtype in (np.float64, np.int64):
        return text
    return f"{type_name(dtype)}({text})"


def _nonfinite(number: float) -> str:
    return "np.nan" if math.isnan(number) else "np.inf" if number > 0 else "-np.inf"


def start_text(kind: str, dtype: np.dtype) -> str:
    """The start of an accumulator: the value that changes nothing."""
    if kind in ("add", "or", "mul"):
        return literal(dtype, kind == "mul", Literal.TYPED)
    if kind == "and":
        return literal(dtype, True if dtype.kind == "b" else ~np.zeros((), dtype), Literal.TYPED)
    largest = kind in ("minimum", "min")
    if dtype.kind == "f":
        return literal(dtype, np.inf if largest else -np.inf, Literal.TYPED)
    if dtype.kind == "b":
        return str(largest)
    info = np.iinfo(dtype)
    return literal(dtype, info.max if largest else info.min, Literal.TYPED)


def _narrow(dtype: np.dtype, text: str) -> str:
    """Back to the dtype Numba would have widened; float64 and 64-bit integers stay as they are."""
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return f"{type_name(dtype)}({text})"
    return text


def _wrap(text: str) -> str:
    """In parentheses unless it is a name, a literal, an element or a call."""
    return text if _is_atom(text) else f"({text})"


def _is_atom(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth == 0 and c in " -+~":
            return False
    return True


def operation_text(e: Expr, args: Sequence[str]) -> Text:
    """The op applied to operand texts; raises `InternalError` for an unknown op."""
    if e.op in _INFIX:
        text = f"{_wrap(args[0])} {_INFIX[e.op]} {_wrap(args[1])}"
        return (_narrow(e.dtype, text) if e.op in _ARITHMETIC else text), ()
    special = _SPECIAL.get(e.op)
    if special is not None:
        return special(e, args)
    if e.op in _NUMPY:
        return f"np.{_NUMPY[e.op]}({', '.join(args)})", ()
    raise InternalError(f"the source printer has no scalar op {e.op!r}")


def _call(name: str, args: Sequence[str]) -> str:
    return f"{name}({', '.join(args)})"


def _helper(name: str) -> Callable[[Expr, Sequence[str]], Text]:
    return lambda e, args: (_narrow(e.dtype, _call(name, args)), (name,))


def _by_kind(real: str, signed: str, unsigned: str) -> Callable[[Expr, Sequence[str]], Text]:
    """A helper per kind of dtype; names with ``np.`` are NumPy's own."""
    def text(e: Expr, args: Sequence[str]) -> Text:
        name = {"f": real, "i": signed}.get(e.dtype.kind, unsigned)
        return _narrow(e.dtype, _call(name, args)), () if name.startswith("np.") else (name,)

    return text


def _shift(name: str) -> Callable[[Expr, Sequence[str]], Text]:
    def text(e: Expr, args: Sequence[str]) -> Text:
        count = [*args, literal(e.dtype, 8 * e.dtype.itemsize, Literal.PLAIN)]
        return _narrow(e.dtype, _call(name, count)), (name,)

    return text


def _neg(e: Expr, args: Sequence[str]) -> Text:
    if e.dtype == np.uint64:
        return f"np.uint64(0) - {_wrap(args[0])}", ()
    return _narrow(e.dtype, f"-{_wrap(args[0])}"), ()


def _not(e: Expr, args: Sequence[str]) -> Text:
    if e.dtype.kind == "b":
        return f"(not {_wrap(args[0])})", ()
    return _narrow(e.dtype, f"~{_wrap(args[0])}"), ()


def _abs(e: Expr, args: Sequence[str]) -> Text:
    return (args[0] if e.dtype.kind == "u" else _narrow(e.dtype, f"abs({args[0]})")), ()


def _fma(e: Expr, args: Sequence[str]) -> Text:
    a, b, c = map(_wrap, args)
    return f"{a} * {b} + {c}", ()


def _select(e: Expr, args: Sequence[str]) -> Text:
    condition, a, b = map(_wrap, args)
    return f"({a} if {condition} else {b})", ()


def _check_index(e: Expr, args: Sequence[str]) -> Text:
    return f"check_index({args[0]}, {args[1]})", ("check_index",)


def _signbit(e: Expr, args: Sequence[str]) -> Text:
    if e.args[0].dtype.kind == "f":
        return f"np.signbit({args[0]})", ()
    return f"{_wrap(args[0])} < 0", ()


def _sign(e: Expr, args: Sequence[str]) -> Text:
    one, zero = (literal(e.dtype, n, Literal.TYPED) for n in (1, 0))
    a = args[0]
    below = zero if e.dtype.kind == "u" else literal(e.dtype, -1, Literal.TYPED)
    rest = f"{a} if {a} != {a} else {zero}" if e.dtype.kind == "f" else zero
    return f"({one} if {a} > 0 else {below} if {a} < 0 else {rest})", ()


def _heaviside(e: Expr, args: Sequence[str]) -> Text:
    one, zero = (literal(e.dtype, n, Literal.TYPED) for n in (1, 0))
    a, at_zero = args
    return f"({one} if {a} > 0 else {zero} if {a} < 0 else {at_zero} if {a} == 0 else {a})", ()


def _int_reciprocal(e: Expr, args: Sequence[str]) -> Text:
    """1/x truncated; x86-64's integer of infinity for 0."""
    a, zero = args[0], literal(e.dtype, 0, Literal.TYPED)
    wide = e.dtype.kind == "i" and e.dtype.itemsize >= 4
    lowest = literal(e.dtype, np.iinfo(e.dtype).min if wide else 0, Literal.TYPED)
    unit = f"{a} == 1 or {a} == -1" if e.dtype.kind == "i" else f"{a} == 1"
    return f"({lowest} if {a} == 0 else {a} if {unit} else {zero})", ()


def _in_float64(helper: str) -> Callable[[Expr, Sequence[str]], Text]:
    return lambda e, args: (f"{type_name(e.dtype)}({_call(helper, args)})", (helper,))


def _of_math(name: str) -> Callable[[Expr, Sequence[str]], Text]:
    return lambda e, args: (f"{type_name(e.dtype)}({_call(f'math.{name}', args)})", ())


def _cast(e: Expr, args: Sequence[str]) -> Text:
    source, name = e.args[0].dtype, type_name(e.dtype)
    if e.dtype.kind == "b":
        return f"{_wrap(args[0])} != 0", ()
    if source.kind == "f" and e.dtype.kind in "iu":
        return _float_to_int(e.dtype, args[0])
    return f"{name}({args[0]})", ()


def _float_to_int(dtype: np.dtype, arg: str) -> Text:
    if dtype == np.uint64:
        return f"to_uint64({arg})", ("to_uint64",)
    helper = "to_int64" if dtype.itemsize == 8 or dtype == np.uint32 else "to_int32"
    text = f"{helper}({arg})"
    exact = dtype.name == helper[3:]
    return (text if exact else f"{type_name(dtype)}({text})"), (helper,)


def _name_of(symbol: str) -> str:
    """The user's own name of a scalar function."""
    return FUNCTIONS[symbol].python.__name__


_SPECIAL: dict[str, Callable[[Expr, Sequence[str]], Text]] = {
    **{name: _helper(name) for name in ("maximum", "minimum", "fmax", "fmin")},
    "popcount": lambda e, args: (f"{type_name(e.dtype)}({_call('popcount', args)})", ("popcount",)),
    **dict.fromkeys(CALLS, lambda e, args: (_call(_name_of(e.attr), args), ())),
    "mulhi": lambda e, args: (_call("mulhi", args), ("mulhi",)),
    "mod": _by_kind("floor_mod", "int_floor_mod", "unsigned_mod"),
    "floor_div": _by_kind("floor_divide", "int_floor_divide", "unsigned_divide"),
    "fmod": _by_kind("np.fmod", "int_fmod", "unsigned_mod"),
    "shl": _shift("shift_left"),
    "shr": _shift("shift_right"),
    "neg": _neg,
    "not": _not,
    "abs": _abs,
    "fma": _fma,
    "select": _select,
    "signbit": _signbit,
    "sign": _sign,
    "heaviside": _heaviside,
    "int_reciprocal": _int_reciprocal,
    "cast": _cast,
    "bitcast": lambda e, args: (
        f"{type_name(e.args[0].dtype)}({args[0]}).view({type_name(e.dtype)})", ()),
    "check_index": _check_index,
    "verify": lambda e, args: (args[0], ()),
    **{name: _in_float64(name) for name in source_special.HELPERS},
    **{name: _of_math(name) for name in source_special.MATH},
}
# Ops whose text repeats an operand; operands that are not names get one first.
REPEATING = frozenset({"sign", "heaviside", "int_reciprocal"})
