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

_SIGN = 1 << 63
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
    if x.op in _OWN:
        return _OWN[x.op].format(*args)
    kinds = {operand.dtype for operand in x.args}
    if kinds == {I64} and x.op in ("add", "sub", "mul"):
        return f"wrapped({args[0]} {INFIX[x.op]} {args[1]})"
    if kinds <= {I64, BOOL, np.dtype(np.float64)} and x.op in _COMPARISONS and len(kinds) == 1:
        return f"bool({args[0]} {INFIX[x.op]} {args[1]})"
    if kinds == {BOOL} and x.op in ("and", "or"):
        return f"({args[0]} {x.op} {args[1]})"
    return f"{bind('op', _applied(x))}({', '.join(args)})"


def _applied(x: Let) -> Callable[..., Any]:
    """The op as a function of numbers."""
    dtype, dtypes, op = x.result.dtype, [a.dtype for a in x.args], x.op
    if op == "part":
        return lambda z: z.imag if x.attr else z.real
    if op == "complex":
        return lambda *parts: np.array(parts, component(dtype)).view(dtype)[0]
    return lambda *numbers: host_number(apply(op, dtype, [
        np.asarray(n, of) for n, of in zip(numbers, dtypes, strict=True)])[()], dtype)
