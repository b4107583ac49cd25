"""Scalar ops of the structured IR as Python text, for numbers that the host knows.

An int64 is an int, a boolean a bool, everything else a NumPy scalar of its dtype: see
`device_numbers.host_number`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.memory import BOOL, I64
from fusec.codegen.structured.statements import Let
from fusec.ops.complex_parts import component

from ...kernels.loop_ir import INFIX
from ...kernels.reference import apply
from .device_numbers import host_number
from .host_kernels import HostKernel

_SIGN = 1 << 63
F64 = np.dtype(np.float64)
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_ROUNDED_ONCE = frozenset({"add", "sub", "mul", "div"})
# Ops of indices and sizes, which only the structured IR has, and the parts of complex numbers.
_OWN = {"wrap_index": "{0} + {1} if {0} < 0 else {0}", "in_range": "0 <= {0} < {1}",
        "quotient": "{0} // {1}", "smallest": "min({0}, {1})", "largest": "max({0}, {1})"}
# What NumPy computes with the bits that kernels have.  Other functions round in fusec's own way.
_EXACT = _COMPARISONS | _ROUNDED_ONCE | {
    "and", "or", "xor", "not", "shl", "shr", "neg", "abs", "select", "cast", "bitcast", "floor",
    "ceil", "trunc", "rint", "sqrt", "minimum", "maximum", "fmin", "fmax", "isnan", "isinf",
    "isfinite", "signbit", "copysign", "sign", "fma", "mod", "fmod", "floor_div", "pos",
    "square", "heaviside", "popcount", "mulhi", "int_reciprocal"}


def is_exact(x: Let) -> bool:
    """Whether the host gives the op's result with a kernel's bits."""
    return is_of_structure(x) or x.op in _EXACT


def is_of_structure(x: Let) -> bool:
    """Whether kernels have no such op."""
    return x.op in _OWN or x.op in ("part", "complex") or any(
        operand.dtype.kind == "c" for operand in (x.result, *x.args))


def wrapped(x: int) -> int:
    """An int64 of its lowest 64 bits."""
    return x if -_SIGN <= x < _SIGN else (x + _SIGN) % (2 * _SIGN) - _SIGN


def text_of(
    x: Let, args: Sequence[str], bind: Callable[[str, Any], str]
) -> str:
    """The op's expression; ``bind`` gives a name for an object."""
    short = _OWN.get(x.op) or _short(x)
    if short:
        return short.format(*args)
    op = _applied(x) if is_exact(x) else HostKernel(x)
    return f"{bind('op', op)}({', '.join(args)})"


def _short(x: Let) -> str:
    """Of the ops that loops count and step with the expression, which takes no call."""
    kinds = {operand.dtype for operand in x.args}
    if len(kinds) > 1 or x.op not in INFIX.keys() | {"not", "cast"}:
        return "{1} if {0} else {2}" if x.op == "select" else ""
    (kind,) = kinds
    text = f"{{0}} {INFIX[x.op]} {{1}}" if x.op in INFIX else ""
    if x.op in _COMPARISONS:
        return f"bool({text})" if kind in (I64, BOOL, F64) else ""
    if kind == I64:
        return f"wrapped({text})" if x.op in ("add", "sub", "mul") else (
            "float64({0})" if x.op == "cast" and x.result.dtype == F64 else "")
    if kind == F64:
        return text if x.op in _ROUNDED_ONCE else ""
    return {"and": "({0} and {1})", "or": "({0} or {1})", "not": "not {0}"}.get(x.op, "") if (
        kind == BOOL) else ""


def _applied(x: Let) -> Callable[..., Any]:
    """The op as a function of numbers."""
    dtype, dtypes, op = x.result.dtype, [a.dtype for a in x.args], x.op
    if op == "part":
        return lambda z: z.imag if x.attr else z.real
    if op == "complex":
        return lambda *parts: np.array(parts, component(dtype)).view(dtype)[0]
    return lambda *numbers: host_number(apply(op, dtype, [
        np.asarray(n, of) for n, of in zip(numbers, dtypes, strict=True)])[()], dtype)
