"""Copying an array to another in a native loop."""

from __future__ import annotations

from contextlib import ExitStack

from fusec.codegen.cpu.emitter import Operand

from .arrays import ArrayRef, is_dense
from .frame import Frame
from .polls import BYTES_OF_A_NS, spend


def copy(frame: Frame, target: ArrayRef, source: ArrayRef) -> None:
    """Copy an array to one of the same shape; the two may share memory."""
    em, itemsize = frame.em, target.dtype.itemsize
    to, come = frame.address(target), frame.address(source)
    if is_dense(target.shape, target.strides, itemsize) and (
            is_dense(source.shape, source.strides, itemsize)):
        nbytes = 1
        for size in target.shape:
            nbytes *= size
        em.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        count = frame.number(nbytes * itemsize)
        spend(frame, em.value(f"lshr i64 {count}, {BYTES_OF_A_NS.bit_length() - 1}"))
        em.line(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {come}, i64 {count}, i1 false)")
        return
    if target.token is source.token:  # else a store might overwrite an element not yet read
        temporary = frame.temporary(source.shape, source.dtype)
        copy(frame, temporary, source)
        copy(frame, target, temporary)
        return
    _copy_elements(frame, target, source, to, come)


def _copy_elements(
    frame: Frame, target: ArrayRef, source: ArrayRef, to: str, come: str
) -> None:
    em = frame.em
    with ExitStack() as stack:
        steps = zip(target.shape, target.strides, source.strides, strict=True)
        for size, target_step, source_step in steps:
            counter = stack.enter_context(em.loop(0, frame.number(size)))
            to = stepped(frame, to, counter, target_step, target)
            come = stepped(frame, come, counter, source_step, source)
        element: Operand = em.load(come, source.dtype, 1)
        em.store(to, element)


def stepped(frame: Frame, address: str, counter: str, stride: int, ref: ArrayRef) -> str:
    """The address plus ``counter`` strides."""
    if stride == 0:
        return address
    return frame.em.offset(address, frame.em.mul(counter, frame.stride(stride, ref.dtype)))
