"""Reductions, scans and products of matrices.

ONNX Runtime 1.32 adds up integers in floating point: their sums are products with ones here, their
products a Loop.  ArgMax skips NaN there, ReduceMax may drop it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, TensorType
from fusec.ir.sizes.dims import is_at_least

from ..rows.scans import start_of
from .double_functions import Arithmetic
from .protocol import (
    BOOL,
    I32,
    I64,
    NotExportedError,
    OnnxNodes,
    dtype_of,
    ints,
    is_any,
    number,
    rule,
    vector,
    where,
)
from .regions import moved

# What ONNX Runtime 1.32 lacks of Max, ArgMax and their like, and the dtype that they are done in.
_WIDE = {"b1": I32, "i2": I32, "u2": I32, "u4": I64}


def _reduced(nodes: OnnxNodes, op: str, x: str, node: Node) -> str:
    return nodes.node(op, x, ints(nodes, node.attrs["axes"]), keepdims=0)


def rows_of(
    nodes: OnnxNodes, x: str, shape: Sequence[Any], axes: Sequence[int]
) -> tuple[str, list[Any]]:
    """A matrix whose rows are the elements along these axes, and the sizes of the others."""
    axes = [axis % len(shape) for axis in axes]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rest = [shape[axis] for axis in kept]
    count = math.prod(shape[axis] for axis in axes)
    matrix = nodes.node("Reshape", moved(nodes, x, [*kept, *axes]), vector(
        nodes, [math.prod(rest), count]), allowzero=1)
    return matrix, rest


@rule("Sum", "Prod")
def _sum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    dtype = dtype_of(node)
    if dtype.kind == "f":
        return _reduced(nodes, f"Reduce{node.op}", inputs[0], node)
    shape, axes = node.inputs[0].shape, node.attrs["axes"]
    if node.op == "Prod":
        return _product(nodes, node, inputs[0])
    if dtype.kind not in "iu" or dtype.itemsize < 4:
        raise NotExportedError(f"of {dtype}")
    matrix, rest = rows_of(nodes, inputs[0], shape, axes)
    count = math.prod(shape[axis] for axis in axes)
    ones = nodes.node("Expand", nodes.constant(dtype.type(1)), vector(nodes, [count, 1]))
    return nodes.node("Reshape", nodes.node("MatMul", matrix, ones), vector(nodes, rest),
                      allowzero=1)


def _product(nodes: OnnxNodes, node: Node, x: str) -> str:
    """A Loop: of no elements ONNX Runtime's Scan stops the process."""
    dtype = dtype_of(node)
    if dtype.kind not in "iu":
        raise NotExportedError(f"of {dtype}")
    shape, axes = node.inputs[0].shape, node.attrs["axes"]
    matrix, rest = rows_of(nodes, x, shape, axes)
    type_ = TensorType(dtype, (math.prod(rest),))

    def step(index: str, goes_on: str, total: str) -> list[str]:
        column = nodes.node("Gather", matrix, index, axis=1)
        return [goes_on, nodes.node("Mul", total, column)]

    given = [TensorType(I64), TensorType(BOOL), type_]
    body, _ = nodes.body("step", given, step, [TensorType(BOOL), type_])
    count = number(nodes, math.prod(shape[axis] for axis in axes))
    start = nodes.node("Expand", nodes.constant(dtype.type(1)), vector(nodes, type_.shape))
    (total,) = nodes.node_of("Loop", [count, "", start], 1, body=body)
    return nodes.node("Reshape", total, vector(nodes, rest), allowzero=1)


@rule("All", "Any")
def _truth(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """By counting, which is right for no elements, too."""
    axes = ints(nodes, node.attrs["axes"])
    if node.op == "Any":
        return is_any(nodes, inputs[0], axes)
    return nodes.node("Not", is_any(nodes, nodes.node("Not", inputs[0]), axes))


def _has_nan(nodes: OnnxNodes, x: str, axes: Sequence[int]) -> tuple[str, str]:
    """Where NaN is, as numbers, and whether there is any along the axes."""
    nans = nodes.cast(nodes.node("IsNaN", x), I32)
    largest = nodes.node("ReduceMax", nans, ints(nodes, axes), keepdims=0)
    return nans, nodes.cast(largest, BOOL)


def _widened(nodes: OnnxNodes, x: str, dtype: Any) -> str:
    if dtype.str[1:] in ("u8", "f2"):
        raise NotExportedError(f"of {dtype}")
    wide = _WIDE.get(dtype.str[1:])
    return x if wide is None else nodes.cast(x, wide)


@rule("Max", "Min")
def _reduced_extremum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Of no elements the run ends with an error, where there is a result to give."""
    dtype = dtype_of(node)
    _require_elements(nodes, node)
    found = _reduced(nodes, f"Reduce{node.op}", _widened(nodes, inputs[0], dtype), node)
    if dtype.kind != "f":
        return nodes.cast(found, dtype) if dtype.str[1:] in _WIDE else found
    _, is_nan = _has_nan(nodes, inputs[0], node.attrs["axes"])
    return nodes.node("Where", is_nan, nodes.constant(dtype.type(math.nan)), found)


def _require_elements(nodes: OnnxNodes, node: Node) -> None:
    shape, axes = node.inputs[0].shape, node.attrs["axes"]
    count = math.prod(shape[axis] for axis in axes)
    if is_at_least(count, 1):
        return
    zero, results = nodes.constant(np.int64(0)), math.prod(node.types[0].shape)
    holds = nodes.node("Greater", number(nodes, count), zero)
    if not is_at_least(results, 1):
        holds = nodes.node("Or", holds, nodes.node("Equal", number(nodes, results), zero))
    line = f" at {node.loc}" if node.loc is not None else ""
    nodes.require(holds, f"ValueError: zero-size array to reduction operation {node.op.lower()}imum"
                         f" which has no identity{line}")


@rule("ArgMax", "ArgMin")
def _arg(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """The first NaN, where there is one."""
    axes, x, dtype = node.attrs["axes"], inputs[0], dtype_of(node)
    rest = None
    if len(axes) != 1:
        x, rest = rows_of(nodes, x, node.inputs[0].shape, axes)
        axes = (1,)
    found = nodes.node(node.op, _widened(nodes, x, dtype), axis=axes[0], keepdims=0)
    if dtype.kind == "f":
        nans, is_nan = _has_nan(nodes, x, axes)
        first = nodes.node("ArgMax", nans, axis=axes[0], keepdims=0)
        found = nodes.node("Where", is_nan, first, found)
    if rest is not None:
        found = nodes.node("Reshape", found, vector(nodes, rest), allowzero=1)
    return nodes.cast(found, node.types[0].dtype)


# --- scans

_SUMMED = ("i4", "i8", "f4", "f8")  # dtypes of ONNX Runtime's CumSum
_JOINED = {"Add": "Add", "Mul": "Mul", "LogicalAnd": "And", "LogicalOr": "Or"}


def _accumulated(
    nodes: OnnxNodes, x: str, start: str, combine: str, dtype: Any, axis: int,
    shape: tuple[Any, ...],
) -> tuple[str, str]:
    """The last and all partial results along an axis, of which there is one element or more."""
    type_ = TensorType(dtype, shape)

    def step(total: str, element: str) -> list[str]:
        joined = _joined(nodes, combine, dtype, total, element)
        return [joined, nodes.node("Identity", joined)]

    body, _ = nodes.body("step", [type_, type_], step, [type_, type_])
    last, every = nodes.node_of(
        "Scan", [start, x], 2, body=body, num_scan_inputs=1, scan_input_axes=[axis],
        scan_output_axes=[axis])
    return last, every


def _joined(nodes: OnnxNodes, combine: str, dtype: Any, a: str, b: str) -> str:
    if combine in _JOINED:
        return nodes.node(_JOINED[combine], a, b)
    of, is_maximum = Arithmetic(nodes, dtype), combine == "Maximum"
    if dtype == BOOL:
        return nodes.node("Or" if is_maximum else "And", a, b)
    first = nodes.node("GreaterOrEqual" if is_maximum else "LessOrEqual", a, b)
    if dtype.kind == "f":
        first = of.Or(of.IsNaN(a), first)
    return where(nodes, dtype, first, a, b)


@rule("Scan")
def _scan(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    (axis,), dtype, shape = node.attrs["axes"], dtype_of(node), node.inputs[0].shape
    if 0 in shape:
        return nodes.node("Identity", inputs[0])
    if node.attrs["combine"] == "Add" and dtype.str[1:] in _SUMMED:
        return nodes.node("CumSum", inputs[0], nodes.constant(np.int64(axis)))
    rest = tuple(size for k, size in enumerate(shape) if k != axis)
    start = nodes.node("Expand", nodes.constant(start_of(node.attrs["combine"], dtype)),
                       vector(nodes, rest))
    return _accumulated(nodes, inputs[0], start, node.attrs["combine"], dtype, axis, rest)[1]


# --- products


@rule("MatMul")
def _matmul(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Vectors are matrices: ONNX Runtime 1.32 has other values for one behind a Transpose."""
    (a, b), dropped = inputs, list[int]()
    if dtype_of(node).kind not in "iuf" or dtype_of(node).itemsize < 4:
        raise NotExportedError(f"of {dtype_of(node)}")
    if node.inputs[0].type.rank == 1:
        a, dropped = nodes.node("Unsqueeze", a, ints(nodes, [0])), [-2]
    if node.inputs[1].type.rank == 1:
        b, dropped = nodes.node("Unsqueeze", b, ints(nodes, [1])), [*dropped, -1]
    product = nodes.node("MatMul", a, b)
    return nodes.node("Squeeze", product, ints(nodes, dropped)) if dropped else product


@rule("Einsum")
def _einsum(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Where every operand is an array in its place, in the dtype of the result."""
    form, dtype = node.attrs["form"], node.types[0].dtype
    operands = tuple(("operand", k) for k in range(len(inputs)))
    if len(form) < 3 or type(form[1]) is not str or (
            form[2:] != operands) or any(v.dtype != dtype for v in node.inputs) or (
            dtype.kind not in "f" and dtype not in (I32, I64)):
        raise NotExportedError("of such arguments")
    return nodes.node("Einsum", *inputs, equation=form[1].replace(" ", ""))


