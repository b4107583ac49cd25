"""Elementwise rows.

Values are NumPy's where ONNX Runtime's operators differ: Max and Min may drop NaN, Sign has another
one, Pow of integers rounds as doubles do.  Source: ONNX operators, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fusec.ir import Node

from .double_functions import DOUBLE, F64, Arithmetic, atan, expm1, is_negative, log1p, with_sign
from .protocol import BOOL, I32, RULES, NotExportedError, OnnxNodes, Rule, dtype_of, rule, where


def _same(op: str) -> Rule:
    """Of float64 by other operators, where ONNX Runtime 1.32 has no kernel."""
    def same(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
        if op in DOUBLE and dtype_of(node) == F64:
            return DOUBLE[op](nodes, inputs[0])
        return nodes.node(op, *inputs)
    return same


_SAME = (
    "Sqrt Exp Log Sin Cos Tan Sinh Cosh Tanh Div Erf Expit:Sigmoid "
    "Arcsin:Asin Arccos:Acos Arctan:Atan Arcsinh:Asinh Arccosh:Acosh Arctanh:Atanh "
    "LogicalAnd:And LogicalOr:Or LogicalXor:Xor LogicalNot:Not "
    "Copy:Identity Pos:Identity StopGradient:Identity")
RULES.update({name: _same(op or name) for name, _, op in (
    word.partition(":") for word in _SAME.split())})


def check_float(node: Node) -> None:
    """Raise `NotExportedError` where the operands are none."""
    if dtype_of(node).kind != "f":
        raise NotExportedError(f"of {dtype_of(node)}")


# Of booleans, whose arithmetic is logic.
_OF_BOOLEANS = {"Add": "Or", "Mul": "And", "Maximum": "Or", "Minimum": "And"}


@rule("Add", "Sub", "Mul")
def _arithmetic(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    of_booleans = dtype_of(node) == BOOL
    return nodes.node(_OF_BOOLEANS[node.op] if of_booleans else node.op, *inputs)


@rule("Neg", "Abs", "Fabs", "Square", "Reciprocal")
def _sign_changes(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    (x,) = inputs
    if node.op == "Square":
        return nodes.node("And" if dtype_of(node) == BOOL else "Mul", x, x)
    if node.op == "Reciprocal":
        check_float(node)
    if dtype_of(node).kind in "ub":
        return nodes.node("Sub", nodes.constant(dtype_of(node).type(0)), x) if (
            node.op == "Neg") else nodes.node("Identity", x)
    return nodes.node("Abs" if node.op == "Fabs" else node.op, x)


_ROUNDED = {"Floor": "Floor", "Ceil": "Ceil", "Rint": "Round"}


@rule("Floor", "Ceil", "Rint", "Trunc")
def _rounded(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    (x,) = inputs
    if dtype_of(node).kind != "f":
        return nodes.node("Identity", x)
    if node.op != "Trunc":
        return nodes.node(_ROUNDED[node.op], x)
    a = Arithmetic(nodes, dtype_of(node))
    return a.Where(a.Less(x, 0), a.Ceil(x), a.Floor(x))


@rule("Sign")
def _sign(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """NaN of NaN."""
    (x,) = inputs
    sign = nodes.node("Sign", x)
    return sign if dtype_of(node).kind != "f" else nodes.node(
        "Where", nodes.node("IsNaN", x), x, sign)


@rule("Pow")
def _pow(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """ONNX Runtime has powers of integers as doubles: they are products here."""
    if dtype_of(node).kind == "f":
        return nodes.node("Pow", *inputs)
    exponent = node.inputs[1].node
    if exponent.op != "Const" or not 0 <= int(exponent.attrs["value"]) <= 64:
        raise NotExportedError(f"of {dtype_of(node)}, to a power that is no small constant")
    result = nodes.constant(dtype_of(node).type(1))
    for _ in range(int(exponent.attrs["value"])):
        result = nodes.node("Mul", result, inputs[0])
    return result


_COMPARED = {"Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater",
             "GreaterEqual": "GreaterOrEqual", "Equal": "Equal", "NotEqual": "Equal"}


@rule(*_COMPARED)
def _compared(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    if dtype_of(node) == BOOL and _COMPARED[node.op] != "Equal":
        inputs = [nodes.cast(x, I32) for x in inputs]
    result = nodes.node(_COMPARED[node.op], *inputs)
    return nodes.node("Not", result) if node.op == "NotEqual" else result


@rule("Where")
def _where(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return where(nodes, node.types[0].dtype, *inputs)


@rule("Maximum", "Minimum", "Fmax", "Fmin")
def _extremum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """NaN where either is NaN, or, of Fmax and Fmin, where both are."""
    (a, b), dtype = inputs, dtype_of(node)
    is_maximum = node.op in ("Maximum", "Fmax")
    if dtype == BOOL:
        return nodes.node("Or" if is_maximum else "And", a, b)
    first = nodes.node("GreaterOrEqual" if is_maximum else "LessOrEqual", a, b)
    if dtype.kind == "f":
        nan = a if node.op in ("Maximum", "Minimum") else b
        first = nodes.node("Or", nodes.node("IsNaN", nan), first)
    return where(nodes, dtype, first, a, b)


@rule("IsNan", "IsInf", "IsFinite")
def _is_special(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Infinity less itself is NaN."""
    (x,) = inputs
    if dtype_of(node).kind != "f":
        itself = nodes.node("Equal", x, x)
        return itself if node.op == "IsFinite" else nodes.node("Not", itself)
    if node.op != "IsFinite":
        return nodes.node("IsNaN" if node.op == "IsNan" else "IsInf", x)
    return nodes.node("Equal", nodes.node("Sub", x, x), nodes.constant(dtype_of(node).type(0)))


@rule("Deg2rad", "Rad2deg")
def _degrees(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    half, pi = (node.types[0].dtype.type(n) for n in (180.0, math.pi))  # rounded as NumPy does
    factor = pi / half if node.op == "Deg2rad" else half / pi
    return nodes.node("Mul", inputs[0], nodes.constant(factor))


@rule("Signbit", "Copysign", "Heaviside")
def _signs(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    check_float(node)
    dtype = dtype_of(node)
    if node.op == "Signbit":
        return is_negative(nodes, dtype, inputs[0])
    x, y = inputs
    a = Arithmetic(nodes, dtype)
    if node.op == "Copysign":
        return with_sign(nodes, dtype, a.Abs(x), y)
    return a.Where(a.Equal(x, 0), y, a.Where(a.Less(x, 0), 0, a.Where(a.Greater(x, 0), 1, x)))


@rule("Log1p", "Expm1")
def _near_one(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return (log1p if node.op == "Log1p" else expm1)(nodes, dtype_of(node), inputs[0])


@rule("Exp2", "Exp10", "Log2", "Log10", "Cbrt", "Logit")
def _by_powers(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    a, (x,) = Arithmetic(nodes, dtype_of(node)), inputs
    if node.op in ("Exp2", "Exp10"):
        return a.Pow(2 if node.op == "Exp2" else 10, x)
    if node.op in ("Log2", "Log10"):
        return a.Div(a.Log(x), math.log(2 if node.op == "Log2" else 10))
    if node.op == "Logit":
        return a.Log(a.Div(x, a.Sub(1, x)))
    size = a.Abs(x)
    root = a.Pow(size, 1 / 3)
    step = a.Div(a.Sub(a.Div(size, a.Mul(root, root)), root), 3)  # Newton's
    is_plain = a.Or(a.Equal(x, 0), a.IsInf(x))
    return with_sign(nodes, dtype_of(node), a.Where(is_plain, size, a.Add(root, step)), x)


@rule("Arctan2")
def _arctan2(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """The angle of (|x|, |y|), turned; C's atan2 has the same values where both are 0 or infinite.
    """
    y, x = inputs
    dtype = dtype_of(node)
    a = Arithmetic(nodes, dtype)
    height, width = a.Abs(y), a.Abs(x)
    both = a.And(a.IsInf(x), a.IsInf(y))
    none = a.And(a.Equal(x, 0), a.Equal(y, 0))
    ratio = a.Where(none, 0, a.Where(both, 1, a.Div(height, width)))
    angle = atan(nodes, ratio) if dtype == F64 else a.Atan(ratio)
    turned = a.Where(is_negative(nodes, dtype, x), a.Sub(math.pi, angle), angle)
    return with_sign(nodes, dtype, turned, y)


@rule("Hypot")
def _hypot(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Scaled, so that squares stay finite; infinite where one is, whatever the other."""
    a = Arithmetic(nodes, dtype_of(node))
    x, y = (a.Abs(v) for v in inputs)
    larger, smaller = a.Where(a.Less(x, y), y, x), a.Where(a.Less(x, y), x, y)
    ratio = a.Div(smaller, a.Where(a.Equal(larger, 0), 1, larger))
    size = a.Mul(larger, a.Sqrt(a.Add(1, a.Mul(ratio, ratio))))
    return a.Where(a.Or(a.IsInf(x), a.IsInf(y)), math.inf, size)


@rule("Cast")
def _cast(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """NumPy's values where ONNX leaves them open: of floats that fit, or become int32 and int64."""
    return nodes.cast(inputs[0], node.types[0].dtype)


@rule("Const")
def _const(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    value = node.attrs["value"]
    size = getattr(value, "expression", None)  # a number of sizes that are open
    if size is not None:
        return nodes.cast(nodes.size(size), node.types[0].dtype)
    return nodes.constant(np.asarray(value, node.types[0].dtype))
