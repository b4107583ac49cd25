"""LLVM's instructions on numbers as C++ expressions: the same values, and no operand for which C++
leaves one open.

Integers are unsigned in C++, in the narrowest type that holds them; bits above their width are 0.
One without a rule raises `NotPrintableError`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence

import numpy as np

from fusec.codegen.vecmath.formats import F32, F64

from ...machine_code.scalar_ir import is_op, op_of
from .emitter import CudaEmitter, CudaValue, type_name
from .math_builder import float_literal
from .scalar_ops import operation_text

Value = tuple[str, str]  # an LLVM type, and a C++ expression
_FLOATS: dict[str, np.dtype] = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
MEMORY = "it keeps numbers in memory"
_WIDTHS = (8, 16, 32, 64, 128)


class NotPrintableError(Exception):
    """An instruction that has no C++ here; the message says which."""


# ------------------------------------------------------------------------------------------- types


def bits_of(kind: str) -> int:
    """The width of an integer type; raises `NotPrintableError` for other types."""
    found = re.fullmatch(r"i(\d+)", kind)
    if found is None or int(found[1]) > _WIDTHS[-1]:
        raise NotPrintableError(MEMORY if kind == "ptr" else f"values of LLVM's type {kind}")
    return int(found[1])


def cpp_type(kind: str) -> str:
    if kind in _FLOATS:
        return type_name(_FLOATS[kind])
    return "bool" if kind == "i1" else f"u{_container(kind)}"


def _container(kind: str) -> int:
    return next(width for width in _WIDTHS if width >= bits_of(kind))


def _signed(kind: str, text: str) -> str:
    """An integer as a signed one."""
    bits, width = bits_of(kind), _container(kind)
    if bits == 1:
        return f"i8({text} ? -1 : 0)"
    if bits == width:
        return f"i{width}({text})"
    width = max(width, 32)
    return f"(i{width}(u{width}({text}) << {width - bits}) >> {width - bits})"


def _cut(kind: str, text: str) -> str:
    """An integer of a type that may be wider, without bits above its width."""
    bits, name = bits_of(kind), cpp_type(kind)
    if bits == 1:
        return f"(({text}) & 1) != 0"
    if bits == _container(kind):
        return f"{name}({text})"
    wide = f"u{max(_container(kind), 32)}"
    return f"{name}({wide}({text}) & (({wide}(1) << {bits}) - 1))"


def constant(kind: str, text: str) -> str:
    """A constant's text in C++."""
    if kind in _FLOATS:
        return float_literal(F64 if kind == "double" else F32, _float_of(text))
    value = {"true": 1, "false": 0, "zeroinitializer": 0}.get(text)
    if value is None:
        if re.fullmatch(r"-?\d+", text) is None:
            raise NotPrintableError(f"the constant {text}")
        value = int(text)
    if kind == "i1":
        return "true" if value else "false"
    value %= 1 << bits_of(kind)
    low = f"{cpp_type(kind)}({value % (1 << 64):#x}ull)"
    return low if value < 1 << 64 else f"((u128({value >> 64:#x}ull) << 64) | {low})"


def _float_of(text: str) -> float:
    """LLVM writes floats in decimal where that is exact, else the bits of the float64."""
    if text == "zeroinitializer":
        return 0.0
    if text.startswith("0x"):
        return float(struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])
    try:
        return float(text)
    except ValueError:
        raise NotPrintableError(f"the constant {text}") from None


# --------------------------------------------------------------------------------- two operands


def binary(op: str, kind: str, a: str, b: str) -> str:
    if kind in _FLOATS:
        return f"rest_of({a}, {b})" if op == "frem" else f"{a} {_INFIX[op]} {b}"
    if op in _DIVISIONS:
        return _DIVISIONS[op](kind, a, b)
    if op in ("shl", "lshr", "ashr"):
        return _shift(op, kind, a, b)
    width = _container(kind)
    if width < 32:
        a, b = f"u32({a})", f"u32({b})"
    text = f"{a} {_INFIX[op]} {b}"
    return text if bits_of(kind) == width >= 32 else _cut(kind, text)


_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
          "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
BINARY = frozenset({*_INFIX, "frem", "sdiv", "srem", "udiv", "urem", "shl", "lshr", "ashr"})


def _signed_division(function: str) -> Callable[[str, str, str], str]:
    return lambda kind, a, b: _cut(
        kind, f"{function}<i{_container(kind)}>({_signed(kind, a)}, {_signed(kind, b)})")


def _unsigned_division(function: str) -> Callable[[str, str, str], str]:
    return lambda kind, a, b: f"{function}<{cpp_type(kind)}>({a}, {b})"


_DIVISIONS = {"sdiv": _signed_division("int_quotient"), "srem": _signed_division("int_fmod"),
              "udiv": _unsigned_division("unsigned_div"),
              "urem": _unsigned_division("unsigned_mod")}


def _shift(op: str, kind: str, a: str, b: str) -> str:
    bits, width = bits_of(kind), max(_container(kind), 32)
    if width == 128 and "(" not in b:
        raise NotPrintableError("shifts of 128 bits by a count of the run")
    if width == 128:
        sign = "<<" if op == "shl" else ">>"
        value = _signed(kind, a) if op == "ashr" else a
        return _cut(kind, f"{value} {sign} int({b})")
    if op == "ashr":
        return _cut(kind, f"shift_right<i{width}, u{width}>({_signed(kind, a)}, i{width}({b}))")
    name = "shift_left" if op == "shl" else "shift_right"
    text = f"{name}<u{width}, u{width}>({a}, {b})"
    return _cut(kind, f"{b} < {bits} ? {text} : u{width}(0)" if bits != width else text)


def overflows(op: str, is_signed: bool, kind: str, a: str, b: str) -> str:
    """Whether a sum, a difference or a product overflows the type."""
    if bits_of(kind) > 64:
        raise NotPrintableError(f"overflow of {bits_of(kind)} bits")
    result = binary(op, kind, a, b)
    if is_signed:
        a, b, result = (f"i128({_signed(kind, text)})" for text in (a, b, f"({result})"))
    else:
        a, b, result = (f"u128({text})" for text in (a, b, result))
    return f"{a} {_INFIX[op]} {b} != {result}"


def compare(predicate: str, kind: str, a: str, b: str) -> str:
    """``icmp`` and ``fcmp``."""
    if kind in _FLOATS:
        return _compare_floats(predicate, a, b)
    if predicate[0] == "s":
        a, b = _signed(kind, a), _signed(kind, b)
    return f"{a} {_ORDER[predicate[-2:]]} {b}"


_ORDER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}


def _compare_floats(predicate: str, a: str, b: str) -> str:
    if predicate in ("ord", "uno"):
        return f"{a} == {a} && {b} == {b}" if predicate == "ord" else f"{a} != {a} || {b} != {b}"
    if predicate in ("one", "ueq"):
        differ = f"{a} < {b} || {a} > {b}"
        return differ if predicate == "one" else f"!({differ})"
    if predicate in ("oeq", "une"):
        return f"{a} {_ORDER[predicate[1:]]} {b}"
    if predicate[1:] not in _OPPOSITE:
        return predicate  # true, false
    if predicate[0] == "o":
        return f"{a} {_ORDER[predicate[1:]]} {b}"
    return f"!({a} {_OPPOSITE[predicate[1:]]} {b})"


# ------------------------------------------------------------------------------------- conversions


def cast(op: str, source: str, a: str, target: str) -> str:
    rule = CASTS[op]
    return rule(source, a, target)


def _resized(source: str, a: str, target: str) -> str:
    return _cut(target, a)


def _sign_extended(source: str, a: str, target: str) -> str:
    return _cut(target, f"{cpp_type(target)}({_signed(source, a)})")


def _of_integer(source: str, a: str, target: str) -> str:
    return f"{cpp_type(target)}({a})"


def _of_signed(source: str, a: str, target: str) -> str:
    return f"{cpp_type(target)}({_signed(source, a)})"


def _to_integer(kind: str) -> Callable[[str, str, str], str]:
    def text(source: str, a: str, target: str) -> str:
        bits = bits_of(target)
        if bits not in (8, 16, 32, 64):
            raise NotPrintableError(f"a float as {target}")
        dtype = np.dtype(f"{kind}{bits // 8}")
        return _spelled("cast", dtype, [CudaValue(a, _FLOATS[source])], CudaEmitter(), target)

    return text


def _bitcast(source: str, a: str, target: str) -> str:
    if source == target:
        return a
    if {source, target} <= {"i32", "i64", "float", "double"}:
        return f"to_bits({a})" if source in _FLOATS else f"from_bits({a})"
    raise NotPrintableError(f"a bitcast of {source} to {target}")


CASTS: dict[str, Callable[[str, str, str], str]] = {
    "zext": _resized, "trunc": _resized, "sext": _sign_extended, "uitofp": _of_integer,
    "sitofp": _of_signed, "fpext": _of_integer, "fptrunc": _of_integer,
    "fptosi": _to_integer("i"), "fptoui": _to_integer("u"), "bitcast": _bitcast,
}


# ------------------------------------------------------------------------------------------- calls


def call(name: str, kind: str, args: Sequence[Value], em: CudaEmitter) -> str:
    """A call's value; ``em`` notes the math functions that it needs."""
    if is_op(name):
        called = op_of(name)
        operands = [_as_dtype(d, text) for d, (_, text) in zip(called.arguments, args, strict=True)]
        return _spelled(called.op, called.result, operands, em, kind)
    base = re.sub(r"(\.[if]\d+)+$", "", name.removeprefix("llvm."))
    if kind in _FLOATS:
        return _call_of_floats(base, kind, args, em, name)
    if base == "is.fpclass":
        return f"(class_of({args[0][1]}) & {args[1][1]}) != 0"
    if not name.startswith("llvm.") or base not in _INTEGER_CALLS:
        raise NotPrintableError(f"a call of {name}")
    return _INTEGER_CALLS[base](kind, args)


def _as_dtype(dtype: np.dtype, text: str) -> CudaValue:
    return CudaValue(text if dtype.kind == "f" else f"{type_name(dtype)}({text})", dtype)


def _spelled(op: str, dtype: np.dtype, args: list[CudaValue], em: CudaEmitter, kind: str) -> str:
    """A scalar op of the back end's own."""
    text = operation_text(em, op, dtype, args)
    return text if dtype.kind == "f" else f"{cpp_type(kind)}({text})"


# LLVM's and the C library's names of functions whose results are exact.
_EXACT = {name: name for name in ("sqrt", "fma", "floor", "ceil", "trunc", "rint", "copysign",
                                  "fmod")}
_EXACT |= {"nearbyint": "rint", "roundeven": "rint", "fabs": "abs"}


def _call_of_floats(
    base: str, kind: str, args: Sequence[Value], em: CudaEmitter, name: str
) -> str:
    op = _EXACT.get(base.removesuffix("f") if base == name and kind == "float" else base)
    if op is None or any(k != kind for k, _ in args):
        raise NotPrintableError(f"a call of {name}")
    return _spelled_exact(op, kind, [CudaValue(text, _FLOATS[kind]) for _, text in args], em)


def _spelled_exact(op: str, kind: str, args: list[CudaValue], em: CudaEmitter) -> str:
    return f"rest_of({args[0]}, {args[1]})" if op == "fmod" else operation_text(
        em, op, _FLOATS[kind], args)


_Rule = Callable[[str, Sequence[Value]], str]  # of the result's type, and the arguments


def _pair(args: Sequence[Value], is_signed: bool) -> tuple[str, str]:
    (kind, a), (_, b) = args
    return (_signed(kind, a), _signed(kind, b)) if is_signed else (a, b)


def _extremum(sign: str, is_signed: bool) -> _Rule:
    def text(kind: str, args: Sequence[Value]) -> str:
        one, other = _pair(args, is_signed)
        return f"{one} {sign} {other} ? {args[0][1]} : {args[1][1]}"

    return text


def _order(is_signed: bool) -> _Rule:
    """-1, 0 or 1."""
    def text(kind: str, args: Sequence[Value]) -> str:
        one, other = _pair(args, is_signed)
        return (f"{one} < {other} ? {constant(kind, '-1')} : "
                f"{cpp_type(kind)}({one} > {other} ? 1 : 0)")

    return text


def _absolute(kind: str, args: Sequence[Value]) -> str:
    a = args[0][1]
    return f"{_signed(kind, a)} < 0 ? {binary('sub', kind, constant(kind, '0'), a)} : {a}"


def _ones(kind: str, args: Sequence[Value]) -> str:
    return f"{cpp_type(kind)}(count_bits({args[0][1]}))"


def _leading(kind: str, args: Sequence[Value]) -> str:
    return f"{cpp_type(kind)}(leading_zeros(u128({args[0][1]})) - {128 - bits_of(kind)})"


def _trailing(kind: str, args: Sequence[Value]) -> str:
    """The bits below the lowest one are those that are set in x - 1 and not in x."""
    a = args[0][1]
    below = binary("sub", kind, a, constant(kind, "1"))
    return f"{cpp_type(kind)}(count_bits(u64(~u64({a}) & u64({below}))))"


def _saturated(kind: str, args: Sequence[Value]) -> str:
    (_, a), (_, b) = args
    return f"{a} > {b} ? {binary('sub', kind, a, b)} : {constant(kind, '0')}"


def _funnel(is_left: bool) -> _Rule:
    """The upper half of two numbers side by side, shifted to the left; or the lower, to the right.
    """
    def text(kind: str, args: Sequence[Value]) -> str:
        (_, a), (_, b), (_, n) = args
        bits = bits_of(kind)
        pair, count = f"((u128({a}) << {bits}) | u128({b}))", f"int({n} % {bits})"
        moved = f"({pair} << {count}) >> {bits}" if is_left else f"{pair} >> {count}"
        return _cut(kind, f"u64({moved})")

    return text


def _narrow(rule: _Rule) -> _Rule:
    """Of integers of at most 64 bits."""
    def text(kind: str, args: Sequence[Value]) -> str:
        if bits_of(kind) > 64:
            raise NotPrintableError(f"bits of an integer of {bits_of(kind)} bits")
        return rule(kind, args)

    return text


_INTEGER_CALLS: dict[str, _Rule] = {
    "smax": _extremum(">", True), "smin": _extremum("<", True),
    "umax": _extremum(">", False), "umin": _extremum("<", False),
    "abs": _absolute, "scmp": _order(True), "ucmp": _order(False),
    "ctpop": _narrow(_ones), "ctlz": _narrow(_leading), "cttz": _narrow(_trailing),
    "usub.sat": _saturated, "fshl": _narrow(_funnel(True)), "fshr": _narrow(_funnel(False)),
}
