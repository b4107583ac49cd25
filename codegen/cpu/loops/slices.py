"""Slices of run-time length, and numbers and arrays of run-time sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fusec.codegen.backend import NotNativeError
from fusec.codegen.cpu.emitter import I64, Operand
from fusec.codegen.cpu.scalar_ops import emit_operation
from fusec.ir import Node, Value

from .arrays import ArrayRef, contiguous
from .bounds import bound_of
from .copying import copy
from .graph_emitter import GraphEmitter
from .views import broadcast_strides, slice_of


def extent(emitter: GraphEmitter, node: Node) -> None:
    """First index and length of a slice, as ``slice.indices`` says."""
    frame, em = emitter.frame, emitter.frame.em
    limit, step = node.attrs["limit"], node.attrs["step"]
    size = frame.number(limit)
    low, high = ("0", size) if step > 0 else ("-1", em.add(size, "-1"))
    rest = iter(node.inputs)
    start, stop = (_clamped(emitter, next(rest), size, low, high) if is_given else default
                   for is_given, default in zip(
                       node.attrs["given"], (low, high) if step > 0 else (high, low), strict=True))
    span = em.value(f"sub i64 {stop}, {start}" if step > 0 else f"sub i64 {start}, {stop}")
    span = em.value(f"call i64 @llvm.smax.i64(i64 {span}, i64 0)")
    count = span if abs(step) == 1 else em.value(
        f"udiv i64 {em.add(span, abs(step) - 1)}, {abs(step)}")
    none = em.value(f"icmp eq i64 {count}, 0")
    first = em.value(f"select i1 {none}, i64 0, i64 {start}")
    emitter.env[node.out(0)] = Operand(first, I64, 1)
    emitter.env[node.out(1)] = Operand("false", node.types[1].dtype, 1)  # only its size is used
    frame.define(node.attrs["length"], count, limit)


def _clamped(emitter: GraphEmitter, value: Value, size: str, low: str, high: str) -> str:
    em = emitter.frame.em
    em.declare("declare i64 @llvm.smax.i64(i64, i64)")
    em.declare("declare i64 @llvm.smin.i64(i64, i64)")
    bound = emitter.scalar(value)
    if bound.dtype != I64:
        bound = emit_operation(em, "cast", I64, [bound])
    negative = em.value(f"icmp slt i64 {bound.text}, 0")
    wrapped = em.add(bound.text, size)
    real = em.value(f"select i1 {negative}, i64 {wrapped}, i64 {bound.text}")
    least = em.value(f"call i64 @llvm.smax.i64(i64 {real}, i64 {low})")
    return em.value(f"call i64 @llvm.smin.i64(i64 {least}, i64 {high})")


def size_number(emitter: GraphEmitter, node: Node) -> None:
    """A size as a scalar value of the program."""
    text = emitter.frame.number(node.attrs["size"])
    emitter.env[node.out()] = Operand(text, I64, 1)


def fill(emitter: GraphEmitter, node: Node) -> None:
    """A value broadcast to run-time sizes."""
    ref, shape = emitter.array(node.inputs[0]), node.attrs["shape"]
    strides = broadcast_strides(ref, shape)
    emitter.env[node.out()] = ArrayRef(ref.token, shape, strides, ref.dtype, ref.offset,
                                       ref.element)


def window(emitter: GraphEmitter, node: Node) -> None:
    """The view at run-time slices; a copy of it where a step is a run-time value too."""
    view = _at(emitter, node, emitter.array(node.inputs[0]), node.inputs[1:])
    if 0 in node.attrs["steps"]:  # kernels are compiled for known strides
        dense = emitter.temporary(view.shape, view.dtype)
        copy(emitter.frame, dense, view)
        view = dense
    emitter.env[node.out()] = view


def window_update(emitter: GraphEmitter, node: Node) -> None:
    """Write into the array's own memory where it is not read later, else into a copy."""
    _, value, *places = node.inputs
    target, is_back = emitter.part_to_change(node)
    if is_back:
        emitter.put_back.add(node.out())
    if value not in emitter.put_back:
        copy(emitter.frame, _at(emitter, node, target, places), emitter.array(value))
    emitter.env[node.out()] = target


def slice_update(emitter: GraphEmitter, node: Node) -> None:
    """A part at bounds that sizes of the run give, in the array's own memory where that is not
    read later."""
    target, value = node.inputs
    ref, attrs = emitter.changeable(target, (value,)), node.attrs
    part = slice_of(emitter.frame, ref, attrs, attrs["sizes"])
    copy(emitter.frame, part, emitter.array(value))
    emitter.env[node.out()] = ref


def concat(emitter: GraphEmitter, node: Node) -> None:
    """Pieces of sizes of the run, one after the other."""
    result, axis, begin = emitter.memory_for(node.out()), node.attrs["axis"], 0
    for value in node.inputs:
        starts = [begin if a == axis else 0 for a in range(len(value.shape))]
        where = {"starts": starts, "steps": [1] * len(starts)}
        copy(emitter.frame, slice_of(emitter.frame, result, where, value.shape),
             emitter.array(value))
        begin = begin + value.shape[axis]
    emitter.env[node.out()] = result


def reserve(emitter: GraphEmitter, node: Node) -> None:
    """The array's own memory where that is large enough and laid out for it, else a copy."""
    ref, shape, dtype = emitter.array(node.inputs[0]), node.attrs["shape"], node.types[0].dtype
    for size, most in zip(ref.shape, shape, strict=True):
        if bound_of(size, emitter.frame.limits) > most:
            raise NotNativeError(f"a size that may be larger than {most}, {size}", node.loc)
    strides = contiguous(shape, dtype.itemsize)
    if ref.offset != "0" or ref.element != "0" or ref.strides != strides or (
            ref.token.nbytes != math.prod(shape) * dtype.itemsize):
        begin = emitter.temporary(shape, dtype, "zeros")
        copy(emitter.frame, ArrayRef(begin.token, ref.shape, strides, dtype), ref)
        ref = begin
    emitter.env[node.out()] = ArrayRef(ref.token, shape, strides, dtype)


def _at(emitter: GraphEmitter, node: Node, ref: ArrayRef, places: Sequence[Value]) -> ArrayRef:
    frame, attrs = emitter.frame, node.attrs
    offset, shape, strides = ref.offset, list(ref.shape), list(ref.strides)
    firsts, steps = places[: len(attrs["axes"])], iter(places[2 * len(attrs["axes"]):])
    for axis, step, size, first in zip(
            attrs["axes"], attrs["steps"], attrs["sizes"], firsts, strict=True):
        begin = emitter.scalar(first).text
        stride = frame.stride(ref.strides[axis], ref.dtype)
        offset = frame.moved(offset, begin, stride)
        shape[axis] = size
        if step:
            strides[axis] = ref.strides[axis] * step
        else:
            strides[axis] = frame.em.mul(emitter.scalar(next(steps)).text, stride)
    return ArrayRef(ref.token, tuple(shape), tuple(strides), ref.dtype, offset, ref.element)
