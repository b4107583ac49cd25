"""Elementwise ops: one scalar operation per element, operands broadcast, one line each.

Operands share the op's compute dtype (tracing inserts ``Cast`` nodes); results have that dtype, or
``bool`` for predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import TensorType

from ..admission.admission import PLAIN, Admission
from ..admission.row_admissions import CAST, OF_BOOLEANS, POWER, REINTERPRET, WHERE
from ..exact_fma import exact_fma
from ..registry import Op, Types, register
from ..shapes import broadcast

BOOL = np.dtype(np.bool_)


def result_type(types: Sequence[TensorType], dtype: np.dtype, kind: str | None = None) -> Types:
    """Broadcast shape with ``dtype``; rank 0 gives a NumPy scalar, or weak if all inputs are."""
    shape = broadcast([t.shape for t in types])
    if kind is None:
        kind = "array" if shape else "weak" if all(t.is_weak for t in types) else "scalar"
    return (TensorType(dtype, shape, kind),)  # type: ignore[arg-type]


def infer_same(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return result_type(types, types[-1].dtype)


def infer_abs(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    """The size of a complex number is real."""
    dtype = types[0].dtype
    return result_type(types, np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype)


def infer_bool(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return result_type(types, BOOL)


def infer_where(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return result_type(types, types[1].dtype, attrs.get("kind"))


def infer_cast(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    source = types[0]
    kind = "scalar" if source.kind == "weak" else source.kind
    return (TensorType(attrs["dtype"], source.shape, attrs.get("kind", kind)),)


def infer_copy(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return (types[0],)


def _ufunc(
    name: str, ufunc: np.ufunc, scalar: str, cost: float = 1.0, *, predicate: bool = False,
    infer: Any = infer_same, reference: Callable[..., Any] | None = None,
    admits: Admission = PLAIN, **columns: Any,
) -> Op:
    return register(Op(
        name=name, kind="elementwise", arity=ufunc.nin, scalar=scalar, ufunc=ufunc,
        numpy=(ufunc,), reference=reference or ufunc, infer=infer_bool if predicate else infer,
        cost=cost, admits=admits, **columns,
        doc=f"np.{ufunc.__name__} of operands that share a dtype.",
    ))


def _plain(
    name: str, arity: int, scalar: str, infer: Any, reference: Callable[..., Any],
    cost: float = 1.0, *, doc: str, admits: Admission = PLAIN, **columns: Any,
) -> Op:
    return register(Op(
        name=name, kind="elementwise", arity=arity, scalar=scalar, infer=infer,
        reference=reference, cost=cost, doc=doc, admits=admits, **columns,
    ))


def fma_reference(a: Any, b: Any, c: Any) -> Any:
    """a*b + c rounded once, as the hardware does."""
    return exact_fma(a, b, c)[()]


def cast_reference(x: Any, dtype: np.dtype, kind: str | None = None) -> Any:
    """By NumPy's loop over strided memory: the one over contiguous memory gives other unsigned
    integers where a float does not fit."""
    x = np.asarray(x)
    if dtype.kind == "u" and x.dtype.kind in "fc":
        x = np.repeat(x[..., None], 2, axis=-1)[..., 0]
    with np.errstate(all="ignore"):
        return x.astype(dtype)[()]


def reinterpret_reference(x: Any, dtype: np.dtype) -> Any:
    x = np.asarray(x)
    return (x.astype(dtype) if "b" in (x.dtype.kind, dtype.kind) else x.copy().view(dtype))[()]


def where_reference(condition: Any, a: Any, b: Any, kind: str | None = None) -> Any:
    return np.where(condition, a, b)[()]


def mul_high_reference(a: Any, b: Any) -> Any:
    return (np.asarray(a, np.uint64) * b >> np.uint64(32)).astype(np.uint32)[()]


def population_reference(x: Any) -> Any:
    return np.bitwise_count(x).astype(np.asarray(x).dtype)


def power_reference(a: Any, b: Any) -> Any:
    """``np.power`` without the shortcut that it takes for one exponent: sqrt is an op of its own.
    """
    bases, exponents = (np.stack([x, x]) for x in np.broadcast_arrays(a, b))
    return np.power(bases, exponents)[0]


# --- arithmetic
_ufunc("Add", np.add, "add", commutative=True, associative=True, is_sum=True, combines=True,
       keeps_kind=True)
_ufunc("Sub", np.subtract, "sub", is_sum=True, combines=True, keeps_kind=True)
_ufunc("Mul", np.multiply, "mul", commutative=True, associative=True, is_product=True,
       combines=True, keeps_kind=True)
_ufunc("Div", np.divide, "div", 4, combines=True, is_estimated=True)
_ufunc("FloorDiv", np.floor_divide, "floor_div", 8, keeps_kind=True, jumps=True)
_ufunc("Mod", np.remainder, "mod", 8, keeps_kind=True, jumps=True)
_ufunc("Fmod", np.fmod, "fmod", 20, jumps=True)
_ufunc("Pow", np.power, "pow", 40, reference=power_reference, keeps_kind=True,
       admits=POWER, is_estimated=True)
_ufunc("Neg", np.negative, "neg", shows_product=True, keeps_kind=True)
_ufunc("Pos", np.positive, "pos", shows_product=True)
_ufunc("Abs", np.absolute, "abs", infer=infer_abs, keeps_kind=True)
_ufunc("Fabs", np.fabs, "abs")
_ufunc("Sign", np.sign, "sign", 2, jumps=True)
_ufunc("Square", np.square, "square", is_product=True, keeps_kind=True)
_ufunc("Reciprocal", np.reciprocal, "reciprocal", 4, is_estimated=True)
_ufunc("Maximum", np.maximum, "maximum", commutative=True, associative=True, first_matters=True,
       combines=True, keeps_kind=True)
_ufunc("Minimum", np.minimum, "minimum", commutative=True, associative=True, first_matters=True,
       combines=True, keeps_kind=True)
_ufunc("Fmax", np.fmax, "fmax", commutative=True, associative=True, first_matters=True,
       combines=True)
_ufunc("Fmin", np.fmin, "fmin", commutative=True, associative=True, first_matters=True,
       combines=True)
_ufunc("Copysign", np.copysign, "copysign", jumps=True)
_ufunc("Heaviside", np.heaviside, "heaviside", 2, jumps=True)
_ufunc("Deg2rad", np.deg2rad, "deg2rad")
_ufunc("Rad2deg", np.rad2deg, "rad2deg")
# --- rounding
_ufunc("Floor", np.floor, "floor", jumps=True)
_ufunc("Ceil", np.ceil, "ceil", jumps=True)
_ufunc("Trunc", np.trunc, "trunc", jumps=True)
_ufunc("Rint", np.rint, "rint", jumps=True)
# --- exponentials, logarithms, trigonometry
_ufunc("Sqrt", np.sqrt, "sqrt", 6, is_estimated=True)
_ufunc("Cbrt", np.cbrt, "cbrt", 20)
_ufunc("Exp", np.exp, "exp", 16, is_estimated=True)
_ufunc("Exp2", np.exp2, "exp2", 16, is_estimated=True)
_ufunc("Expm1", np.expm1, "expm1", 20)
_ufunc("Log", np.log, "log", 18, is_estimated=True)
_ufunc("Log2", np.log2, "log2", 18, is_estimated=True)
_ufunc("Log10", np.log10, "log10", 18, is_estimated=True)
_ufunc("Log1p", np.log1p, "log1p", 20)
_ufunc("Sin", np.sin, "sin", 20, is_estimated=True)
_ufunc("Cos", np.cos, "cos", 20, is_estimated=True)
_ufunc("Tan", np.tan, "tan", 26, is_estimated=True)
_ufunc("Arcsin", np.arcsin, "arcsin", 24)
_ufunc("Arccos", np.arccos, "arccos", 24)
_ufunc("Arctan", np.arctan, "arctan", 20)
_ufunc("Arctan2", np.arctan2, "arctan2", 28)
_ufunc("Sinh", np.sinh, "sinh", 26)
_ufunc("Cosh", np.cosh, "cosh", 24)
_ufunc("Tanh", np.tanh, "tanh", 24, is_estimated=True)
_ufunc("Arcsinh", np.arcsinh, "arcsinh", 30)
_ufunc("Arccosh", np.arccosh, "arccosh", 30)
_ufunc("Arctanh", np.arctanh, "arctanh", 30)
_ufunc("Hypot", np.hypot, "hypot", 14, commutative=True, first_matters=True)
# --- comparisons and predicates
_ufunc("Less", np.less, "lt", predicate=True)
_ufunc("LessEqual", np.less_equal, "le", predicate=True)
_ufunc("Greater", np.greater, "gt", predicate=True)
_ufunc("GreaterEqual", np.greater_equal, "ge", predicate=True)
_ufunc("Equal", np.equal, "eq", predicate=True, commutative=True)
_ufunc("NotEqual", np.not_equal, "ne", predicate=True, commutative=True)
_ufunc("IsNan", np.isnan, "isnan", predicate=True)
_ufunc("IsInf", np.isinf, "isinf", predicate=True)
_ufunc("IsFinite", np.isfinite, "isfinite", predicate=True)
_ufunc("Signbit", np.signbit, "signbit", predicate=True)
# --- logic and bits
_ufunc("LogicalAnd", np.logical_and, "and", predicate=True, commutative=True, associative=True,
       admits=OF_BOOLEANS)
_ufunc("LogicalOr", np.logical_or, "or", predicate=True, commutative=True, associative=True,
       admits=OF_BOOLEANS)
_ufunc("LogicalXor", np.logical_xor, "xor", predicate=True, commutative=True, associative=True,
       admits=OF_BOOLEANS)
_ufunc("LogicalNot", np.logical_not, "not", predicate=True, admits=OF_BOOLEANS)
_ufunc("BitAnd", np.bitwise_and, "and", commutative=True, associative=True, combines=True)
_ufunc("BitOr", np.bitwise_or, "or", commutative=True, associative=True, combines=True)
_ufunc("BitXor", np.bitwise_xor, "xor", commutative=True, associative=True, combines=True)
_ufunc("Invert", np.invert, "not")
_ufunc("ShiftLeft", np.left_shift, "shl")
_ufunc("ShiftRight", np.right_shift, "shr")
_plain("PopulationCount", 1, "popcount", infer_same, population_reference, 2, takes="u",
       doc="Ones in an unsigned number, in its own dtype (np.bitwise_count gives uint8).")
_plain("MulHigh", 2, "mulhi", infer_same, mul_high_reference, 2, takes=("u4",),
       doc="Upper half of the product of two uint32, of which counter-based random numbers are "
           "made (Salmon et al., SC 2011).")
# --- selection, conversion, contraction
_plain("Where", 3, "select", infer_where, where_reference,
       admits=WHERE,
       doc="The second operand where the first is true, else the third. attr kind, if not array.",
       keeps_kind=True)
_plain("Cast", 1, "cast", infer_cast, cast_reference, shows_product=True, attrs=("dtype",),
       admits=CAST,
       doc="Another dtype, as astype (docs/ir.md has the values). attrs: dtype, kind.",
       keeps_kind=True)
_plain("Reinterpret", 1, "bitcast", infer_cast, reinterpret_reference, 0.5, takes="iuf",
       admits=REINTERPRET,
       doc="The same bits as a dtype of the same size, as ndarray.view; a boolean is 0 or 1. "
           "attrs: dtype.")
_plain("Fma", 3, "fma", infer_same, fma_reference, takes=("f4", "f8"),
       is_folded=False,  # wider than it computes
       doc="a*b + c, rounded once (IEEE 754-2019, 5.4).")
_plain("Copy", 1, "pos", infer_copy, np.array,
       doc="A value in memory of its own, where a result would otherwise be an argument itself.")
_plain("StopGradient", 1, "pos", infer_copy, np.array,
       doc="The value, which is a constant to derivatives: fusec.stop_gradient.")
