"""Every scalar op of the loop IR as CUDA C++.

No user value reaches undefined behaviour: operations that C++ leaves open are functions of the
prelude, and signed integers wrap because they are added as unsigned ones (see docs/ir.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusec.codegen.vecmath import FUNCTIONS
from fusec.codegen.vecmath.formats import F32 as F32_FORMAT
from fusec.codegen.vecmath.formats import F64 as F64_FORMAT
from fusec.errors import unsupported

from .emitter import BOOL, HALF, CudaEmitter, CudaValue, literal, type_name, unsigned_type
from .math_builder import function_name

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
Text = Callable[[np.dtype, Sequence[CudaValue]], str]
# Ops that move halves without looking at them.
_ANY_WIDTH = frozenset({"select", "pos", "bitcast"})
# Of two zeros NumPy takes the first one for halves, the second one for wider floats.
_FIRST_OF_EQUALS = frozenset({"maximum", "minimum", "fmax", "fmin"})


def supports(op: str, dtype: np.dtype) -> bool:
    """Whether the op has an implementation here for results of this dtype."""
    return op in _OPS or (op in FUNCTIONS and dtype.kind == "f")


def emit_operation(
    em: CudaEmitter, op: str, dtype: np.dtype, args: Sequence[CudaValue]
) -> CudaValue:
    """The result of one scalar op."""
    return em.value(dtype, operation_text(em, op, dtype, args))


def operation_text(em: CudaEmitter, op: str, dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    """One scalar op as an expression; raises `UnsupportedError` for an op that has none."""
    if op not in _ANY_WIDTH and HALF in (dtype, *(a.dtype for a in args)):
        return _in_single(em, op, dtype, args)
    text = _OPS.get(op)
    if text is not None:
        return text(dtype, args)
    if op in FUNCTIONS and dtype.kind == "f":
        return _math_call(em, op, dtype, args)
    raise unsupported(f"the CUDA back end has no scalar op {op!r}",
                      cure="leave this function to the CPU: with fusec.device('CPU')")


def _in_single(em: CudaEmitter, op: str, dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    """An op on halves: computed in float32, its result rounded."""
    if op == "cast" and dtype == HALF and args[0].dtype == F64:
        return f"narrowed({args[0]})"
    if op in _FIRST_OF_EQUALS:
        args = args[::-1]
    wide = [em.value(F32, f"widened({a})") if a.dtype == HALF else a for a in args]
    if dtype != HALF:
        return operation_text(em, op, dtype, wide)
    return f"narrowed({emit_operation(em, op, F32, wide)})"


def _math_call(em: CudaEmitter, op: str, dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    em.math[op, dtype] = None
    name = function_name(op, F64_FORMAT if dtype == F64 else F32_FORMAT)
    return f"{name}({', '.join(map(str, args))})"


# ------------------------------------------------------------------------------------ operations


def _arithmetic(sign: str) -> Text:
    """Integers of up to 32 bits as u32: two u16 would be multiplied as signed integers."""
    def text(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
        if dtype.kind == "f":
            return f" {sign} ".join(map(str, args))
        wide = "u64" if dtype.itemsize == 8 else "u32"
        return f"{type_name(dtype)}({f' {sign} '.join(f'{wide}({a})' for a in args)})"

    return text


def _infix(sign: str) -> Text:
    return lambda dtype, args: f"{args[0]} {sign} {args[1]}"


def _logic(sign: str) -> Text:
    return lambda dtype, args: f"{type_name(dtype)}({args[0]} {sign} {args[1]})"


def _function(name: str) -> Text:
    return lambda dtype, args: f"{name}({', '.join(map(str, args))})"


def _by_kind(real: str, signed: str, unsigned: str) -> Text:
    """A function of the prelude for each kind of dtype."""
    def text(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
        name = {"f": real, "i": signed}.get(dtype.kind, unsigned)
        return f"{name}<{type_name(dtype)}>({args[0]}, {args[1]})" if dtype.kind != "f" else (
            f"{name}({args[0]}, {args[1]})")

    return text


def _shift(name: str) -> Text:
    return lambda dtype, args: (
        f"{name}<{type_name(dtype)}, {unsigned_type(dtype)}>({args[0]}, {args[1]})")


def _not(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    return f"!{args[0]}" if dtype == BOOL else f"{type_name(dtype)}(~{args[0]})"


def _neg(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    if dtype.kind == "f":
        return f"-{args[0]}"
    return f"{type_name(dtype)}({unsigned_type(dtype)}(0) - {unsigned_type(dtype)}({args[0]}))"


def _abs(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    if dtype.kind == "f":
        return f"size_of({args[0]})"
    return str(args[0]) if dtype.kind == "u" else f"{args[0]} < 0 ? {_neg(dtype, args)} : {args[0]}"


def _mul_high(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    return f"u32((u64({args[0]}) * u64({args[1]})) >> 32)"


def _popcount(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    return f"{type_name(dtype)}(count_bits({unsigned_type(args[0].dtype)}({args[0]})))"


def _signbit(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    x = args[0]
    if x.dtype.kind != "f":
        return f"{x} < 0" if x.dtype.kind == "i" else "false"
    return f"(to_bits({x}) >> {8 * x.dtype.itemsize - 1}) != 0"


def _isinf(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    return f"size_of({args[0]}) == {literal(args[0].dtype, np.inf)}"


def _isfinite(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    return f"size_of({args[0]}) < {literal(args[0].dtype, np.inf)}"


def _sign(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    if dtype.kind == "u":
        return f"{type_name(dtype)}({args[0]} != 0)"
    return f"sign_of<{type_name(dtype)}>({args[0]})"


def _int_reciprocal(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    wide = dtype.kind == "i" and dtype.itemsize >= 4
    of_zero = literal(dtype, np.iinfo(dtype).min if wide else 0)
    return f"int_reciprocal<{type_name(dtype)}>({args[0]}, {of_zero})"


def _select(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    return f"{args[0]} ? {args[1]} : {args[2]}"


def _cast(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    x, kind = args[0], type_name(dtype)
    if dtype == BOOL:
        return f"{x} != {literal(x.dtype, 0)}"
    if x.dtype.kind != "f" or dtype.kind == "f":
        return f"{kind}({x})"
    if dtype == np.uint64:
        return f"to_u64({x})"
    wide = dtype.itemsize == 8 or dtype == np.uint32
    return f"{kind}({'to_i64' if wide else 'to_i32'}({x}))"


def _bitcast(dtype: np.dtype, args: Sequence[CudaValue]) -> str:
    """Through the unsigned integer of the width."""
    x = args[0]
    bits = f"to_bits({x})" if x.dtype.kind == "f" else f"{unsigned_type(x.dtype)}({x})"
    if dtype == HALF:
        return f"half_of_bits({bits})"
    return f"from_bits({bits})" if dtype.kind == "f" else f"{type_name(dtype)}({bits})"


_OPS: dict[str, Text] = {
    "add": _arithmetic("+"), "sub": _arithmetic("-"), "mul": _arithmetic("*"), "div": _infix("/"),
    **{name: _logic(sign) for name, sign in (("and", "&"), ("or", "|"), ("xor", "^"))},
    **{name: _infix(sign) for name, sign in (
        ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!="))},
    **{name: _function(function) for name, function in (
        ("sqrt", "root"), ("fma", "fma_of"), ("floor", "floored"), ("ceil", "ceiled"),
        ("trunc", "truncated"), ("rint", "rounded"), ("copysign", "with_sign"),
        ("maximum", "larger"), ("minimum", "smaller"), ("fmax", "larger_number"),
        ("fmin", "smaller_number"), ("heaviside", "step_at"), ("isnan", "is_nan"))},
    "not": _not,
    "neg": _neg,
    "abs": _abs,
    "popcount": _popcount,
    "mulhi": _mul_high,
    "sign": _sign,
    "isinf": _isinf,
    "isfinite": _isfinite,
    "signbit": _signbit,
    "mod": _by_kind("floor_mod", "int_mod", "unsigned_mod"),
    "floor_div": _by_kind("floor_div", "int_floor_div", "unsigned_div"),
    "fmod": _by_kind("rest_of", "int_fmod", "unsigned_mod"),
    "shl": _shift("shift_left"),
    "shr": _shift("shift_right"),
    "int_reciprocal": _int_reciprocal,
    "select": _select,
    "cast": _cast,
    "bitcast": _bitcast,
}
