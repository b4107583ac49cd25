"""Slices of run-time length, and numbers and arrays of run-time sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Node, Value

from ..analyses.bounds import bound_of
from ..loops.graph_builder import GraphBuilder
from ..memory import BOOL, I64, ZERO, Constant, Operand, Register, View, contiguous, is_zero
from .views import broadcast_strides, slice_of

MINUS_ONE = Constant(-1, I64)


def extent(graph: GraphBuilder, node: Node) -> None:
    """First index and length of a slice, as ``slice.indices`` says."""
    limit, step = node.attrs["limit"], node.attrs["step"]
    build = graph.builder
    size = build.number(limit)
    low, high = (ZERO, size) if step > 0 else (MINUS_ONE, build.let("add", I64, size, MINUS_ONE))
    rest = iter(node.inputs)
    start, stop = (_clamped(graph, next(rest), size, low, high) if is_given else default
                   for is_given, default in zip(
                       node.attrs["given"], (low, high) if step > 0 else (high, low), strict=True))
    ends = (stop, start) if step > 0 else (start, stop)
    span = build.let("largest", I64, build.let("sub", I64, *ends), ZERO)
    count = span if abs(step) == 1 else build.let(
        "quotient", I64, build.let("add", I64, span, Constant(abs(step) - 1, I64)),
        Constant(abs(step), I64))
    none = build.let("eq", BOOL, count, ZERO)
    graph.env[node.out(0)] = build.let("select", I64, none, ZERO, start)
    graph.env[node.out(1)] = Constant(False, node.types[1].dtype)  # only its size is used
    build.define(node.attrs["length"], count, limit)


def _clamped(
    graph: GraphBuilder, value: Value, size: Operand, low: Operand, high: Operand
) -> Register:
    build = graph.builder
    real = build.wrapped(graph.index(value), size)
    return build.let("smallest", I64, build.let("largest", I64, real, low), high)


def size_number(graph: GraphBuilder, node: Node) -> None:
    """A size as a scalar value of the program."""
    graph.env[node.out()] = graph.builder.number(node.attrs["size"])


def fill(graph: GraphBuilder, node: Node) -> None:
    """A value broadcast to run-time sizes."""
    source, shape = graph.array(node.inputs[0]), node.attrs["shape"]
    strides = broadcast_strides(source, shape)
    graph.env[node.out()] = View(source.memory, shape, strides, source.dtype, source.offset,
                                       source.element)


def window(graph: GraphBuilder, node: Node) -> None:
    """The view at run-time slices; a copy of it where a step is a run-time value too."""
    view = _at(graph, node, graph.array(node.inputs[0]), node.inputs[1:])
    if 0 in node.attrs["steps"]:  # kernels are compiled for known strides
        dense = graph.temporary(view.shape, view.dtype)
        graph.builder.copy(dense, view)
        view = dense
    graph.env[node.out()] = view


def window_update(graph: GraphBuilder, node: Node) -> None:
    """Write into the array's own memory where it is not read later, else into a copy."""
    _, value, *places = node.inputs
    target, is_back = graph.part_to_change(node)
    if is_back:
        graph.put_back.add(node.out())
    if value not in graph.put_back:
        graph.builder.copy(_at(graph, node, target, places), graph.array(value))
    graph.env[node.out()] = target


def slice_update(graph: GraphBuilder, node: Node) -> None:
    """A part at bounds that sizes of the run give, in the array's own memory where that is not
    read later."""
    target, value = node.inputs
    source, attrs = graph.changeable(target, (value,)), node.attrs
    part = slice_of(graph.builder, source, attrs, attrs["sizes"])
    graph.builder.copy(part, graph.array(value))
    graph.env[node.out()] = source


def concat(graph: GraphBuilder, node: Node) -> None:
    """Pieces of sizes of the run, one after the other."""
    result, axis, begin = graph.memory_for(node.out()), node.attrs["axis"], 0
    for value in node.inputs:
        starts = [begin if a == axis else 0 for a in range(len(value.shape))]
        where = {"starts": starts, "steps": [1] * len(starts)}
        part = slice_of(graph.builder, result, where, value.shape)
        graph.builder.copy(part, graph.array(value))
        begin = begin + value.shape[axis]
    graph.env[node.out()] = result


def reserve(graph: GraphBuilder, node: Node) -> None:
    """The array's own memory where that is large enough and laid out for it, else a copy."""
    source, shape, dtype = graph.array(node.inputs[0]), node.attrs["shape"], node.types[0].dtype
    for size, most in zip(source.shape, shape, strict=True):
        if bound_of(size, graph.builder.limits) > most:
            raise NotNativeError(f"a size that may be larger than {most}, {size}", node.loc)
    strides = contiguous(shape, dtype.itemsize)
    if not is_zero(source.offset) or not is_zero(source.element) or source.strides != strides or (
            source.memory.nbytes != math.prod(shape) * dtype.itemsize):
        begin = graph.temporary(shape, dtype, "zeros")
        graph.builder.copy(View(begin.memory, source.shape, strides, dtype), source)
        source = begin
    graph.env[node.out()] = View(source.memory, shape, strides, dtype)


def _at(graph: GraphBuilder, node: Node, source: View, places: Sequence[Value]) -> View:
    build, attrs = graph.builder, node.attrs
    offset, shape, strides = source.offset, list(source.shape), list(source.strides)
    firsts, steps = places[: len(attrs["axes"])], iter(places[2 * len(attrs["axes"]):])
    for axis, step, size, first in zip(
            attrs["axes"], attrs["steps"], attrs["sizes"], firsts, strict=True):
        begin = graph.scalar(first)
        stride = build.stride(source.strides[axis], source.dtype)
        offset = build.moved(offset, begin, stride)
        shape[axis] = size
        if step:
            strides[axis] = source.strides[axis] * step
        else:
            strides[axis] = build.let("mul", I64, graph.scalar(next(steps)), stride)
    return View(source.memory, tuple(shape), tuple(strides), source.dtype, offset, source.element)
