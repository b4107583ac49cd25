"""Views, pieces, and parts at slices that the run decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Node
from fusec.ir.sizes.dims import Dim

from . import regions
from .protocol import I64, Number, OnnxNodes, dtype_of, ints, number, rule, vector


@rule("Transpose")
def _transpose(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Transpose", inputs[0], perm=list(node.attrs["perm"]))


@rule("Reshape")
def _reshape(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Reshape", inputs[0], vector(nodes, node.attrs["shape"]), allowzero=1)


@rule("ExpandDims", "Squeeze")
def _axes_of_one(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    op = "Unsqueeze" if node.op == "ExpandDims" else "Squeeze"
    return nodes.node(op, inputs[0], ints(nodes, node.attrs["axes"]))


@rule("BroadcastTo", "Fill")
def _broadcast_to(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Expand", inputs[0], vector(nodes, node.attrs["shape"]))


@rule("Iota")
def _iota(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    size, dtype = node.attrs["size"], node.attrs["dtype"]
    if not isinstance(size, Dim):
        return nodes.constant(np.arange(size, dtype=dtype))
    counted = nodes.node("Range", nodes.constant(np.int64(0)), nodes.size(size),
                         nodes.constant(np.int64(1)))
    return counted if dtype == I64 else nodes.cast(counted, dtype)


@rule("Slice")
def _slice(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    places = (node.attrs[name] for name in ("starts", "steps", "sizes"))
    return regions.read(nodes, inputs[0], range(node.inputs[0].type.rank), *places)


@rule("SliceUpdate")
def _slice_update(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    target, value = inputs
    sizes = node.attrs["sizes"]
    if node.inputs[1].shape != tuple(sizes):
        value = nodes.node("Expand", value, vector(nodes, sizes))
    return regions.written(
        nodes, target, node.inputs[0].shape, value, range(len(sizes)), node.attrs["starts"],
        node.attrs["steps"], sizes)


@rule("Concat")
def _concat(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.node("Concat", *inputs, axis=node.attrs["axis"])


@rule("Diagonal")
def _diagonal(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Elements at pairs of indices, whose axis is then the last."""
    rank, offset = node.inputs[0].type.rank, node.attrs["offset"]
    counted = nodes.node("Range", nodes.constant(np.int64(0)), nodes.size(node.types[0].shape[-1]),
                         nodes.constant(np.int64(1)))
    column = nodes.node("Unsqueeze", counted, ints(nodes, [1]))
    pairs = nodes.node("Add", column, nodes.constant(
        np.array([[max(-offset, 0), max(offset, 0)]], I64)))
    x = regions.moved(nodes, inputs[0], regions.front(rank, node.attrs["axes"]))
    elements = nodes.node("GatherND", x, pairs)
    return regions.moved(nodes, elements, [*range(1, rank - 1), 0])


# --- slices that the run decides


@rule("Extent")
def _extent(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> list[str]:
    """Python's ``slice(start, stop, step).indices(limit)``, its first index and length."""
    step, limit = node.attrs["step"], nodes.size(node.attrs["limit"])
    constant, bounds = lambda n: nodes.constant(np.int64(n)), iter(inputs)
    low, high = (constant(0), limit) if step > 0 else (
        constant(-1), nodes.node("Sub", limit, constant(1)))
    ends = []
    for is_given, default in zip(node.attrs["given"], (low, high)[::1 if step > 0 else -1],
                                 strict=True):
        if not is_given:
            ends.append(default)
            continue
        bound = nodes.cast(next(bounds), I64)
        is_before = nodes.node("Less", bound, constant(0))
        bound = nodes.node("Where", is_before, nodes.node("Add", bound, limit), bound)
        ends.append(nodes.node("Max", nodes.node("Min", bound, high), low))
    start, stop = ends
    distance = nodes.node("Sub", *((stop, start) if step > 0 else (start, stop)))
    whole = nodes.node("Add", distance, constant(abs(step) - 1))
    count = nodes.node("Div", nodes.node("Max", whole, constant(0)), constant(abs(step)))
    nodes.define(node.attrs["length"], count)
    is_empty = nodes.node("Equal", count, constant(0))
    witness = nodes.node("Expand", nodes.constant(np.bool_(False)), vector(nodes, [count]))
    return [nodes.node("Where", is_empty, constant(0), start), witness]


@rule("Size")
def _size(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return nodes.size(node.attrs["size"])


def _places(nodes: OnnxNodes, node: Node, places: Sequence[str]) -> tuple[Any, ...]:
    """Axes, first indices, steps and lengths of a window."""
    axes = node.attrs["axes"]
    given = iter(places[2 * len(axes):])
    steps: list[Number] = [step or next(given) for step in node.attrs["steps"]]
    return axes, places[:len(axes)], steps, places[len(axes): 2 * len(axes)]


@rule("Window")
def _window(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return regions.read(nodes, inputs[0], *_places(nodes, node, inputs[1:]))


@rule("WindowUpdate")
def _window_update(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    return regions.written(nodes, inputs[0], node.inputs[0].shape, inputs[1],
                           *_places(nodes, node, inputs[2:]))


@rule("Reserve")
def _reserve(nodes: OnnxNodes, node: Node, inputs: Sequence[str]) -> str:
    """Zeros behind the operand."""
    x, shape, dtype = inputs[0], list(node.inputs[0].shape), dtype_of(node)
    for axis, size in enumerate(node.attrs["shape"]):
        if size == shape[axis]:
            continue
        missing = nodes.node("Sub", number(nodes, size), number(nodes, shape[axis]))
        rest = [missing if k == axis else n for k, n in enumerate(shape)]
        zeros = nodes.node("Expand", nodes.constant(dtype.type(0)), vector(nodes, rest))
        x, shape[axis] = nodes.node("Concat", x, zeros, axis=axis), size
    return x


