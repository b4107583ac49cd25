"""Copying an array to another in a native loop."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from fusec.codegen.cpu.emitter import LlvmValue
from fusec.codegen.structured.memory import View
from fusec.codegen.structured.statements import Copy

from .frame import Frame
from .polls import BYTES_OF_A_NS, spend


def copy(frame: Frame, statement: Copy) -> None:
    """One block of memory where both lie in C order, else element by element."""
    em, target, source = frame.em, statement.target, statement.source
    to, come = frame.address(target), frame.address(source)
    if not (target.is_dense and source.is_dense):
        _copy_elements(frame, target, source, to, come)
        return
    nbytes = target.dtype.itemsize
    for size in target.shape:
        nbytes *= size
    em.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
    count = frame.number(nbytes)
    spend(frame, em.value(f"lshr i64 {count}, {BYTES_OF_A_NS.bit_length() - 1}"))
    em.line(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {come}, i64 {count}, i1 false)")


def _copy_elements(
    frame: Frame, target: View, source: View, to: str, come: str
) -> None:
    em = frame.em
    with ExitStack() as stack:
        steps = zip(target.shape, target.strides, source.strides, strict=True)
        for size, target_step, source_step in steps:
            counter = stack.enter_context(em.loop(0, frame.number(size)))
            to = stepped(frame, to, counter, target_step, target)
            come = stepped(frame, come, counter, source_step, source)
        element: LlvmValue = em.load(come, source.dtype, 1)
        em.store(to, element)


def stepped(frame: Frame, address: str, counter: str, stride: Any, view: View) -> str:
    """The address plus ``counter`` strides."""
    if stride == 0:
        return address
    return frame.em.offset(address, frame.em.mul(counter, frame.stride(stride, view.dtype)))
