"""Elements and parts at indices that the run decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, Value

from ..shapes import broadcast
from .protocol import (
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
from .regions import back, front, moved


def _constant(nodes: OnnxNodes, value: int) -> str:
    return nodes.constant(np.int64(value))


def _line(node: Node) -> str:
    return f" at {node.loc}" if node.loc is not None else ""


def _checked(nodes: OnnxNodes, node: Node, index: str, limit: str, axis: int) -> str:
    """Indices with negative ones wrapped; the run ends where one is out of range."""
    zero = _constant(nodes, 0)
    wrapped = nodes.node("Where", nodes.node("Less", index, zero),
                         nodes.node("Add", index, limit), index)
    is_bad = nodes.node("Or", nodes.node("Less", wrapped, zero),
                        nodes.node("GreaterOrEqual", wrapped, limit))
    nodes.require(nodes.node("Not", is_any(nodes, is_bad)),
                  f"IndexError: an index of axis {axis} is out of bounds{_line(node)}")
    return wrapped


@rule("CheckIndex", "BoundsCheck")
def _check_index(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    index, limit = inputs
    wrapped = _checked(nodes, node, index, limit, node.attrs["axis"])
    return wrapped if node.op == "CheckIndex" else nodes.constant(np.bool_(True))


def _picked(nodes: OnnxNodes, node: Node, indices: Sequence[str]) -> str:
    """The checked indices of the axes as one vector, as ScatterND and GatherND want them."""
    shape, safe, parts = node.inputs[0].shape, node.attrs.get("safe", ()), list[str]()
    values = node.inputs[len(node.inputs) - len(indices):]
    for axis, index, value in zip(node.attrs["axes"], indices, values, strict=True):
        index = index if value.dtype == I64 else nodes.cast(index, I64)
        if axis not in safe:
            index = _checked(nodes, node, index, number(nodes, shape[axis]), axis)
        parts.append(nodes.node("Unsqueeze", index, ints(nodes, [0])))
    return nodes.node("Concat", *parts, axis=0)


@rule("Pick")
def _pick(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    rank, axes = node.inputs[0].type.rank, node.attrs["axes"]
    return nodes.node("GatherND", moved(nodes, inputs[0], front(rank, axes)),
                      _picked(nodes, node, inputs[1:]))


@rule("PickUpdate")
def _pick_update(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    target, value, *indices = inputs
    perm = front(node.inputs[0].type.rank, node.attrs["axes"])
    new = nodes.node("ScatterND", moved(nodes, target, perm), _picked(nodes, node, indices), value)
    return moved(nodes, new, back(perm))


def _broadcast_indices(nodes: OnnxNodes, values: Sequence[Value], names: Sequence[str]) -> tuple[
        list[str], tuple[Any, ...]]:
    """Index operands in one shape."""
    shape = tuple(broadcast([v.shape for v in values]))
    return [name if v.shape == shape else nodes.node("Expand", name, vector(nodes, shape))
            for v, name in zip(values, names, strict=True)], shape


@rule("Gather")
def _gather(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Of one axis Gather, of several GatherND; then the indices' axes go to their place."""
    source, axes, at = node.inputs[0], node.attrs["axes"], node.attrs["at"]
    indices, shape = _broadcast_indices(nodes, node.inputs[1:], inputs[1:])
    rank, count = source.type.rank - len(axes), len(shape)
    if list(axes) == [at]:
        return nodes.node("Gather", inputs[0], indices[0], axis=at)
    x = moved(nodes, inputs[0], front(source.type.rank, axes))
    if len(axes) == 1:
        elements = nodes.node("Gather", x, indices[0], axis=0)
    else:
        last = ints(nodes, [-1])
        elements = nodes.node("GatherND", x, nodes.node(
            "Concat", *(nodes.node("Unsqueeze", i, last) for i in indices), axis=-1))
    rest = [*range(count, count + rank)]
    return moved(nodes, elements, [*rest[:at], *range(count), *rest[at:]])


_REDUCTIONS = {"Add": "add", "Sub": "add", "Mul": "mul", "Maximum": "max", "Minimum": "min"}


@rule("Scatter")
def _scatter(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """By linear indices into the whole.  ONNX leaves open which of equal indices counts where
    nothing is combined: the last one's number is found first."""
    target, value, *indices = inputs
    type_, axes, at = node.inputs[0].type, node.attrs["axes"], node.attrs["at"]
    combine, dtype = node.attrs.get("combine", ""), dtype_of(node)
    _check_combined(combine, dtype)
    indices, shape = _broadcast_indices(nodes, node.inputs[2:], indices)
    perm, count = front(type_.rank, axes), len(shape)
    sizes = [type_.shape[axis] for axis in perm]
    x = moved(nodes, target, perm)
    order = [*range(at, at + count), *range(at), *range(at + count, node.inputs[1].type.rank)]
    values = nodes.node("Reshape", moved(nodes, value, order), ints(nodes, [-1]))
    places = _linear(nodes, indices, sizes, len(axes), count)
    flat = nodes.node("Reshape", x, ints(nodes, [-1]))
    if combine:
        values = nodes.node("Neg", values) if combine == "Sub" else values
        new = nodes.node("ScatterElements", flat, places, values, axis=0,
                         reduction=_REDUCTIONS[combine])
    else:
        new = _with_last(nodes, flat, places, values, dtype)
    return moved(nodes, nodes.node("Reshape", new, vector(nodes, sizes), allowzero=1), back(perm))


def _check_combined(combine: str, dtype: Any) -> None:
    """Raise where ONNX Runtime has no such reduction, or drops NaN."""
    if not combine:
        return
    if combine not in _REDUCTIONS or dtype.kind not in "iuf" or (
            combine == "Sub" and dtype.kind == "u") or (
            dtype.kind == "f" and combine in ("Maximum", "Minimum")):
        raise NotExportedError(f"which combines {dtype} by {combine}")


def _linear(
    nodes: OnnxNodes, indices: Sequence[str], sizes: Sequence[Any], axes: int, rank: int
) -> str:
    """A vector of the places of all elements in the flat array, in order."""
    total = _constant(nodes, 0)
    for k, index in enumerate(indices):
        stride = number(nodes, math.prod(sizes[k + 1:]))
        total = nodes.node("Add", total, nodes.node("Mul", index, stride))
    rest = math.prod(sizes[axes:])
    column = nodes.node("Reshape", total, ints(nodes, [-1, 1]))
    counted = nodes.node("Range", _constant(nodes, 0), number(nodes, rest), _constant(nodes, 1))
    return nodes.node("Reshape", nodes.node("Add", column, counted), ints(nodes, [-1]))


def _with_last(nodes: OnnxNodes, flat: str, places: str, values: str, dtype: Any) -> str:
    """The flat array with the values at the places, the last of those at one place."""
    none = _constant(nodes, -1)
    count = nodes.node("Squeeze", nodes.node("Shape", values), ints(nodes, [0]))
    numbers = nodes.node("Range", _constant(nodes, 0), count, _constant(nodes, 1))
    unset = nodes.node("Expand", none, nodes.node("Shape", flat))
    last = nodes.node("ScatterElements", unset, places, numbers, axis=0, reduction="max")
    zero = nodes.constant(np.zeros(1, dtype))
    some = nodes.node("Concat", zero, values, axis=0)  # so that there is an element to read
    new = nodes.node("Gather", some, nodes.node("Add", last, nodes.constant(np.int64(1))), axis=0)
    return where(nodes, dtype, nodes.node("Equal", last, none), flat, new)
