"""Kernels that a native loop runs: each of their nests is a call of its machine code."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.codegen.cpu.abi import BlockLayout, open_words
from fusec.codegen.structured.kernel_statements import NestUse, RunKernel
from fusec.codegen.structured.memory import Constant, Register, View
from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir.sizes.dims import Dim, is_static

from ...kernels.specialise import LoopForm, tasks_of
from .frame import Frame
from .polls import before_work


def run_kernel(frame: Frame, statement: RunKernel) -> None:
    """Its nests in order; numbers that it gives are loaded afterwards."""
    operands = [_place(frame, x) for x in statement.operands]
    results = [_target(frame, x) for x in statement.results]
    for nest in statement.nests:
        _call(frame, nest, [*operands, *results])
    for result, place in zip(statement.results, results, strict=True):
        if isinstance(result, Register):
            frame.values[result] = frame.em.load(place, result.dtype, 1)


def _place(frame: Frame, location: Register | Constant | View) -> str:
    """The address of an operand; a scalar is stored to an alloca."""
    if isinstance(location, View):
        return frame.address(location)
    value = frame.operand(location)
    slot = frame.variable(value.dtype)
    frame.em.store(slot, value)
    return slot


def _target(frame: Frame, result: Register | View) -> str:
    return frame.address(result) if isinstance(result, View) else frame.variable(result.dtype)


def _call(frame: Frame, use: NestUse, places: Sequence[str]) -> None:
    if use.unbounded:
        raise NotNativeError(f"a sum over a size that only the run knows, {use.unbounded}")
    em, form, number = frame.em, use.form, len(frame.nests)
    frame.nests.append(use)
    block = frame.word("nest", number, "ptr")
    for position, operand in enumerate(form.operands):
        address = places[operand.buffer]
        if isinstance(operand.offset, Dim) or operand.offset:
            address = em.offset(address, frame.number(operand.offset))
        at = em.value(f"getelementptr i64, ptr {block}, i64 {position}")
        em.line(f"store ptr {address}, ptr {at}")
    for slot, size in open_words(form):
        at = em.value(f"getelementptr i64, ptr {block}, i64 {slot}")
        em.line(f"store i64 {frame.number(size)}, ptr {at}")
    status = _status(frame, number, form) if use.exit >= 0 else ""
    _run(frame, number, block, form)
    if status:
        status_word = em.value(f"load i64, ptr {status}")
        frame.fail_unless(em.value(f"icmp eq i64 {status_word}, 0"), use.exit)


def _run(frame: Frame, number: int, block: str, form: LoopForm) -> None:
    em = frame.em
    code, pool = frame.word("code", number, "ptr"), frame.word("pool", 0, "ptr")
    tasks, grain = _tasks(frame, number, block, form), frame.word("grain", number)
    before_work(frame, em.mul(tasks, frame.word("work", number)))
    with em.branch(em.value(f"icmp ule i64 {tasks}, {grain}")):  # for one thread: no pool needed
        em.line(f"call void {code}(ptr {block}, i64 0, i64 {tasks})")
    with em.branch(em.value(f"icmp ugt i64 {tasks}, {grain}")):
        em.line(f"call void {pool}(ptr {code}, ptr {block}, i64 {tasks}, i64 {grain})")
    if form.mode == "flat":
        finish = frame.word("finish", number, "ptr")
        em.line(f"call void {finish}(ptr {block}, i64 0, i64 1)")


def _tasks(frame: Frame, number: int, block: str, form: LoopForm) -> str:
    """The number of tasks.  A nest with partial results needs it in its block too."""
    if is_static(form.extents):
        return frame.word("tasks", number)
    tasks = frame.number(tasks_of(form))
    if form.mode == "flat":
        at = frame.em.value(
            f"getelementptr i64, ptr {block}, i64 {BlockLayout.of(form).task_count}")
        frame.em.line(f"store i64 {tasks}, ptr {at}")
    return tasks


def _status(frame: Frame, number: int, form: LoopForm) -> str:
    """The status word that a failed check sets; its address goes into the nest's block once."""
    layout, (status, record) = BlockLayout.of(form), frame.failure_words()
    block = frame.early_word("nest", number, "ptr")
    for slot, address in ((layout.status, status), (layout.record, record)):
        at = f"{block}.slot{slot}"
        frame.entry.append(f"  {at} = getelementptr i64, ptr {block}, i64 {slot}")
        frame.entry.append(f"  store ptr {address}, ptr {at}")
    return status
