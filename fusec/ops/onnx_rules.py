"""Rows as nodes of ONNX, opset 21: the column ``export``, filled when this module is imported.

A rule is called with an `OnnxNodes`, a node and the names of its operands, and gives the names of
its results.  Values are NumPy's where ONNX Runtime's operators differ: ArgMax skips NaN there,
integer Div truncates and stops the process for 0, Max and ReduceMax may drop NaN.
Source: ONNX operators, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fusec.ir import Node
from fusec.ir.sizes.dims import symbols_of

from .registry import all_ops

OPSET = 21
I64 = np.dtype(np.int64)


class OnnxNodes(Protocol):
    """The collaborator that makes nodes of ONNX."""

    def node(self, op: str, *inputs: str, **attrs: Any) -> str: ...
    def constant(self, value: Any) -> str: ...
    def cast(self, name: str, dtype: np.dtype) -> str: ...


class NotExportedError(ValueError):
    """A node that ONNX has no operators for."""


Rule = Callable[[OnnxNodes, Node, Sequence[str]], str]
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule
    return add


def _same(op: str) -> Rule:
    return lambda nodes, node, inputs: nodes.node(op, *inputs)


_SAME = (
    "Add Sub Mul Neg Abs Sqrt Exp Log Sin Cos Tan Sinh Cosh Tanh Floor Ceil Sign Pow Less Greater "
    "Equal Where Reciprocal Arcsin:Asin Arccos:Acos Arctan:Atan Arcsinh:Asinh "
    "Arccosh:Acosh Arctanh:Atanh Rint:Round LessEqual:LessOrEqual GreaterEqual:GreaterOrEqual "
    "LogicalAnd:And LogicalOr:Or LogicalXor:Xor LogicalNot:Not IsNan:IsNaN IsInf:IsInf "
    "Fabs:Abs Copy:Identity Pos:Identity StopGradient:Identity")
_RULES.update({name: _same(op or name) for name, _, op in (
    word.partition(":") for word in _SAME.split())})
_OF_BITS = {"BitAnd": "And", "BitOr": "Or", "BitXor": "Xor", "Invert": "Not"}


@_rule(*_OF_BITS)
def _of_bits(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """ONNX has operators of their own for booleans."""
    name = _OF_BITS[node.op]
    return nodes.node(name if node.types[0].dtype == np.bool_ else f"Bitwise{name}", *inputs)


def _dtype(node: Node) -> Any:
    return node.inputs[0].dtype


@_rule("Square")
def _square(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Mul", inputs[0], inputs[0])


@_rule("MatMul")
def _matmul(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Vectors are matrices: ONNX Runtime 1.32 has other values for one behind a Transpose."""
    (a, b), dropped = inputs, list[int]()
    if node.inputs[0].type.rank == 1:
        a, dropped = nodes.node("Unsqueeze", a, _ints(nodes, [0])), [-2]
    if node.inputs[1].type.rank == 1:
        b, dropped = nodes.node("Unsqueeze", b, _ints(nodes, [1])), [*dropped, -1]
    product = nodes.node("MatMul", a, b)
    return nodes.node("Squeeze", product, _ints(nodes, dropped)) if dropped else product


@_rule("NotEqual")
def _not_equal(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Not", nodes.node("Equal", *inputs))


@_rule("Div")
def _div(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    if _dtype(node).kind != "f":
        raise NotExportedError(f"of {_dtype(node)}")
    return nodes.node("Div", *inputs)


@_rule("FloorDiv", "Mod")
def _divide_integers(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Rounded down, 0 for the divisor 0, and no division of the least number by -1, for both of
    which the processor stops."""
    if _dtype(node).kind not in "iu":
        raise NotExportedError(f"of {_dtype(node)}")
    a, b = inputs
    zero, one = (nodes.constant(_dtype(node).type(n)) for n in (0, 1))
    by_zero = nodes.node("Equal", b, zero)
    special = by_zero
    if _dtype(node).kind == "i":
        by_minus_one = nodes.node("Equal", b, nodes.constant(_dtype(node).type(-1)))
        special = nodes.node("Or", by_zero, by_minus_one)
    divisor = nodes.node("Where", special, one, b)
    quotient = nodes.node("Div", a, divisor)
    rest = nodes.node("Sub", a, nodes.node("Mul", quotient, divisor))
    if _dtype(node).kind == "i":
        signs = nodes.node("Xor", nodes.node("Less", rest, zero), nodes.node("Less", divisor, zero))
        is_over = nodes.node("And", signs, nodes.node("Not", nodes.node("Equal", rest, zero)))
        quotient = nodes.node("Where", is_over, nodes.node("Sub", quotient, one), quotient)
        rest = nodes.node("Where", is_over, nodes.node("Add", rest, divisor), rest)
        quotient = nodes.node("Where", by_minus_one, nodes.node("Sub", zero, a), quotient)
    if node.op == "Mod":
        return nodes.node("Where", special, zero, rest)
    return nodes.node("Where", by_zero, zero, quotient)


@_rule("Maximum", "Minimum")
def _extremum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """NaN where either is NaN."""
    a, b = inputs
    is_maximum = node.op == "Maximum"
    if _dtype(node).kind != "f":
        return nodes.node("Max" if is_maximum else "Min", a, b)
    first = nodes.node("GreaterOrEqual" if is_maximum else "LessOrEqual", a, b)
    return nodes.node("Where", nodes.node("Or", nodes.node("IsNaN", a), first), a, b)


@_rule("IsFinite")
def _is_finite(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Infinity less itself is NaN."""
    if _dtype(node).kind != "f":
        raise NotExportedError(f"of {_dtype(node)}")
    rest = nodes.node("Sub", inputs[0], inputs[0])
    return nodes.node("Equal", rest, nodes.constant(_dtype(node).type(0)))


@_rule("Deg2rad", "Rad2deg")
def _degrees(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    half, pi = (node.types[0].dtype.type(n) for n in (180.0, math.pi))  # rounded as NumPy does
    factor = pi / half if node.op == "Deg2rad" else half / pi
    return nodes.node("Mul", inputs[0], nodes.constant(factor))


@_rule("Cast")
def _cast(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.cast(inputs[0], node.types[0].dtype)


@_rule("Const")
def _const(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.constant(np.asarray(node.attrs["value"], node.types[0].dtype))


@_rule("Iota")
def _iota(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.constant(np.arange(node.attrs["size"], dtype=node.attrs["dtype"]))


# --- views and pieces


def _ints(nodes: OnnxNodes, numbers: Sequence[int]) -> str:
    return nodes.constant(np.array(numbers, I64))


@_rule("Transpose")
def _transpose(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Transpose", inputs[0], perm=list(node.attrs["perm"]))


@_rule("Reshape")
def _reshape(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Reshape", inputs[0], _ints(nodes, node.attrs["shape"]), allowzero=1)


@_rule("ExpandDims", "Squeeze")
def _axes_of_one(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    op = "Unsqueeze" if node.op == "ExpandDims" else "Squeeze"
    return nodes.node(op, inputs[0], _ints(nodes, node.attrs["axes"]))


@_rule("BroadcastTo")
def _broadcast_to(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Expand", inputs[0], _ints(nodes, node.attrs["shape"]))


def _sliced(
    nodes: OnnxNodes, x: str, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int],
    axes: Sequence[int],
) -> str:
    ends = [start + step * size if start + step * size >= 0 else np.iinfo(I64).min
            for start, step, size in zip(starts, steps, sizes, strict=True)]
    return nodes.node("Slice", x, *(_ints(nodes, n) for n in (starts, ends, axes, steps)))


@_rule("Slice")
def _slice(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    starts, steps, sizes = (node.attrs[name] for name in ("starts", "steps", "sizes"))
    return _sliced(nodes, inputs[0], starts, steps, sizes, range(node.inputs[0].type.rank))


@_rule("SliceUpdate")
def _slice_update(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Pieces before, in and behind the region, axis by axis."""
    if any(step != 1 for step in node.attrs["steps"]):
        raise NotExportedError("with a step")
    shape = node.inputs[0].shape

    def updated(x: str, axis: int) -> str:
        if axis == len(shape):
            return inputs[1]
        start, size = node.attrs["starts"][axis], node.attrs["sizes"][axis]
        rest = shape[axis] - start - size
        if start == rest == 0:
            return updated(x, axis + 1)
        inside = _sliced(nodes, x, [start], [1], [size], [axis])
        parts = [_sliced(nodes, x, [0], [1], [start], [axis])] if start else []
        parts.append(updated(inside, axis + 1))
        if rest:
            parts.append(_sliced(nodes, x, [start + size], [1], [rest], [axis]))
        return nodes.node("Concat", *parts, axis=axis)

    return updated(inputs[0], 0)


@_rule("Concat")
def _concat(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Concat", *inputs, axis=node.attrs["axis"])


# --- reductions


def _reduced(nodes: OnnxNodes, op: str, x: str, node: Node) -> str:
    return nodes.node(op, x, _ints(nodes, node.attrs["axes"]), keepdims=0)


@_rule("Sum", "Prod")
def _sum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """ONNX Runtime 1.32 reduces integers in floating point: their sums are products with ones."""
    if _dtype(node).kind in "iu":
        return _sum_of_integers(nodes, node, inputs[0])
    return _reduced(nodes, f"Reduce{node.op}", inputs[0], node)


def _sum_of_integers(nodes: OnnxNodes, node: Node, x: str) -> str:
    if node.op == "Prod":
        raise NotExportedError(f"of {_dtype(node)}")
    shape, axes = node.inputs[0].shape, [axis % len(node.inputs[0].shape)
                                         for axis in node.attrs["axes"]]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    count = math.prod(shape[axis] for axis in axes)
    if not count:
        return nodes.constant(np.zeros([shape[axis] for axis in kept], _dtype(node)))
    rows = nodes.node("Reshape", nodes.node("Transpose", x, perm=[*kept, *axes]), _ints(
        nodes, [math.prod(shape[axis] for axis in kept), count]), allowzero=1)
    sums = nodes.node("MatMul", rows, nodes.constant(np.ones((count, 1), _dtype(node))))
    return nodes.node("Reshape", sums, _ints(nodes, [shape[a] for a in kept]), allowzero=1)


@_rule("All", "Any")
def _truth(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    numbers = nodes.cast(inputs[0], np.dtype(np.int32))
    op = "ReduceMin" if node.op == "All" else "ReduceMax"
    return nodes.cast(_reduced(nodes, op, numbers, node), np.dtype(np.bool_))


def _has_nan(nodes: OnnxNodes, x: str, node: Node) -> tuple[str, str]:
    """Where NaN is, as numbers, and whether there is any along the axes."""
    nans = nodes.cast(nodes.node("IsNaN", x), np.dtype(np.int32))
    return nans, nodes.cast(_reduced(nodes, "ReduceMax", nans, node), np.dtype(np.bool_))


@_rule("Max", "Min")
def _reduced_extremum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    found = _reduced(nodes, f"Reduce{node.op}", inputs[0], node)
    if _dtype(node).kind != "f":
        return found
    _, is_nan = _has_nan(nodes, inputs[0], node)
    return nodes.node("Where", is_nan, nodes.constant(_dtype(node).type(math.nan)), found)


@_rule("ArgMax", "ArgMin")
def _arg(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """The first NaN, where there is one."""
    axes, x = node.attrs["axes"], inputs[0]
    if len(axes) != 1:
        raise NotExportedError("over several axes")
    found = nodes.node(node.op, x, axis=axes[0], keepdims=0)
    if _dtype(node).kind == "f":
        nans, is_nan = _has_nan(nodes, x, node)
        first = nodes.node("ArgMax", nans, axis=axes[0], keepdims=0)
        found = nodes.node("Where", is_nan, first, found)
    return nodes.cast(found, node.types[0].dtype)


def check_sizes(node: Node) -> None:
    """Raises `NotExportedError` for attributes with sizes that are open."""
    if symbols_of(tuple(v for v in node.attrs.values() if isinstance(v, tuple))):
        raise NotExportedError("with a size that is open")


for _row in all_ops():
    if _row.name in _RULES:
        object.__setattr__(_row, "export", _RULES[_row.name])
