"""Fused kernels in a native loop: scalar ones run in registers, others are calls of nests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fusec.codegen.backend import NotNativeError
from fusec.codegen.complex_pairs import buffer_strides
from fusec.codegen.control_program import OF_NOTHING, ErrorExit
from fusec.codegen.cpu.abi import BlockLayout, open_words
from fusec.codegen.cpu.emitter import Operand
from fusec.codegen.cpu.scalar_calls import call_once
from fusec.codegen.cpu.scalar_ops import emit_operation
from fusec.codegen.in_place_updates import (
    checks_come_first,
    drop_unchanged,
    may_run_in_place,
    stores_at_computed,
)
from fusec.codegen.loop_ir import LEAVES, Access, Expr, Kernel, Nest, walk
from fusec.codegen.lower import lower
from fusec.codegen.specialise import LoopForm, specialise, tasks_of
from fusec.ir import Node
from fusec.ir.bindings import TYPICAL
from fusec.ir.dims import Dim, is_static, symbols_of
from fusec.ops import get
from fusec.ops.complex_parts import component
from fusec.ops.scalar_calls import CALLS, CHECKED

from .arrays import ArrayRef, Location
from .bounds import bound_of
from .frame import Frame, NestCall
from .graph_emitter import GraphEmitter
from .order import updated_operands
from .polls import before_work


def fused(emitter: GraphEmitter, node: Node) -> None:
    """One kernel."""
    kernel = lower(node)
    _refuse_nothing(emitter, node)
    if all(not nest.extents for nest in kernel.nests) and not _computes_indices(kernel):
        _in_registers(emitter, node, kernel)
        return
    if any(e.op == CHECKED for nest in kernel.nests for e in walk(nest.roots)):
        raise NotNativeError("a function of fusec.vectorize may raise", node.loc)
    _by_calls(emitter, node, kernel)


def _refuse_nothing(emitter: GraphEmitter, node: Node) -> None:
    """Emit an early exit where an extremum goes over a run-time size that is 0."""
    frame = emitter.frame
    for inner in node.attrs["body"].nodes:
        if not get(inner.op).chooses:
            continue
        count = math.prod(inner.inputs[0].shape[axis] for axis in inner.attrs["axes"])
        if isinstance(count, Dim):
            is_positive = frame.em.value(f"icmp ne i64 {frame.number(count)}, 0")
            frame.fail_unless(is_positive, ErrorExit(inner, OF_NOTHING))


def _computes_indices(kernel: Kernel) -> bool:
    """Whether it loads or stores at computed indices, or checks them."""
    return any(
        any(s.index for stage in nest.stages for s in stage.stores)
        or any(e.op == "check_index" or (e.op == "load" and e.args) for e in walk(nest.roots))
        for nest in kernel.nests
    )


# ------------------------------------------------------------------------------- in registers


def _in_registers(emitter: GraphEmitter, node: Node, kernel: Kernel) -> None:
    operands: list[Location] = [emitter.location(v) for v in node.inputs]
    for nest in kernel.nests:
        results = _evaluate(emitter.frame, node, kernel, nest, operands)
        for buffer, result in results.items():
            emitter.env[node.out(buffer - len(node.inputs))] = result


def _evaluate(
    frame: Frame, node: Node, kernel: Kernel, nest: Nest, operands: Sequence[Location]
) -> dict[int, Operand]:
    """What a nest without loops stores in each buffer."""
    em = frame.em
    memo: dict[int, Operand] = {}
    stored: dict[int, list[Operand]] = {}
    for stage in nest.stages:
        for e in walk(stage.roots):
            if e.op in CALLS:
                memo[id(e)] = _scalar_call(frame, node, e, [memo[id(a)] for a in e.args])
            elif e.op not in LEAVES:
                memo[id(e)] = emit_operation(em, e.op, e.dtype, [memo[id(a)] for a in e.args])
            elif e.op == "load":
                memo[id(e)] = _load(frame, nest.accesses[e.attr], operands)
            elif e.op == "param":
                memo[id(e)] = frame.constant(e.dtype, kernel.params[e.attr].value)
            elif e.op == "const":
                memo[id(e)] = em.const(e.dtype, e.attr)
            else:
                raise AssertionError(f"internal error: {e.op} in a nest without loops")
        for store in stage.stores:
            stored.setdefault(nest.accesses[store.access].buffer, []).append(memo[id(store.value)])
    return {
        buffer: _joined(frame, parts, node.types[buffer - len(node.inputs)].dtype)
        for buffer, parts in stored.items()
    }


def _joined(frame: Frame, parts: Sequence[Operand], dtype: np.dtype) -> Operand:
    """The number stored; the two parts of a complex number are joined to its bits."""
    if dtype.kind != "c":
        return parts[-1]
    em, slot = frame.em, frame.variable(dtype)
    for number, part in enumerate(parts):
        em.store(em.offset(slot, str(number * part.dtype.itemsize)), part)
    return em.load(slot, dtype, 1)


def _scalar_call(frame: Frame, node: Node, e: Expr, args: Sequence[Operand]) -> Operand:
    """A function of ``fusec.vectorize``.  Where it raises, its arguments go into the block, for the
    error."""
    result, status = call_once(frame.em, e, args)
    if e.op == CHECKED:
        words = []
        for x in args:
            words.append((frame.host_word(x.dtype), x.dtype))
            frame.em.store(frame.word_address("host", words[-1][0]), x)
        holds = frame.em.value(f"icmp eq i32 {status}, 0")
        frame.fail_unless(holds, ErrorExit(node, call=(e.attr, tuple(words))))
    return result


def _load(frame: Frame, access: Access, operands: Sequence[Location]) -> Operand:
    location = operands[access.buffer]
    if isinstance(location, Operand) and location.dtype.kind != "c":
        return location
    strides = _buffer_strides(location)
    start = sum(i.start * s for i, s in zip(access.index, strides, strict=True))
    address = _place(frame, location)
    if start:
        address = frame.em.offset(address, frame.number(start))
    dtype = component(location.dtype) if location.dtype.kind == "c" else location.dtype
    return frame.em.load(address, dtype, 1)


def _buffer_strides(location: Location) -> tuple[int, ...]:
    """The strides with which kernels see it; a number has none."""
    strides = () if isinstance(location, Operand) else location.strides
    return buffer_strides(location.dtype, strides)


# ----------------------------------------------------------------------------------- by calls


def _by_calls(emitter: GraphEmitter, node: Node, kernel: Kernel) -> None:
    frame = emitter.frame
    kernel, results = _results(emitter, node, kernel)
    operands = [emitter.location(v) for v in node.inputs]
    places = [_place(frame, location) for location in (*operands, *results)]
    strides = [_buffer_strides(location) for location in (*operands, *results)]
    for nest in kernel.nests:
        _call(frame, node, kernel, specialise(kernel, nest, strides), places)
    for out, (location, place) in enumerate(zip(results, places[len(operands):], strict=True)):
        value = node.out(out)
        if isinstance(location, Operand):
            emitter.env[value] = frame.em.load(place, location.dtype, 1)
        else:
            emitter.env[value] = location


def _results(
    emitter: GraphEmitter, node: Node, kernel: Kernel
) -> tuple[Kernel, list[Location]]:
    """Where each output is stored: in the operand that it updates, if that is safe, else in new
    memory."""
    results: list[Location] = []
    first = len(node.inputs)
    pairs = updated_operands(node)
    last = {source: out for out, source in pairs.items()}  # one output for an operand's memory
    for out, value in enumerate(node.outputs):
        if not value.shape:
            results.append(Operand("", value.dtype, 1))
            continue
        updated = None
        if out in pairs and last[pairs[out]] == out:
            changed = drop_unchanged(kernel, first + out, pairs[out])
            updated = _in_place(emitter, node, changed, out, pairs[out])
            kernel = changed if updated is not None else kernel
        results.append(updated or emitter.memory_for(value))
    return kernel, results


def _in_place(
    emitter: GraphEmitter, node: Node, kernel: Kernel, out: int, source: int
) -> ArrayRef | None:
    """The operand's memory if this kernel may write the result there."""
    ref = emitter.location(node.inputs[source])
    if not isinstance(ref, ArrayRef) or ref.token not in emitter.owned:
        return None
    if emitter.is_read_later(ref.token, (node.inputs[source],)):
        return None
    written = len(node.inputs) + out
    if not may_run_in_place(kernel, {written: source}):
        return None
    if stores_at_computed(kernel, written) and not checks_come_first(kernel, written):
        return None
    return ref


def _place(frame: Frame, location: Any) -> str:
    """The address of an operand; a scalar is stored to an alloca."""
    if isinstance(location, ArrayRef):
        return frame.address(location)
    slot = frame.variable(location.dtype)
    if location.text:
        frame.em.store(slot, location)
    return slot


def _call(
    frame: Frame, node: Node, kernel: Kernel, form: LoopForm, places: Sequence[str]
) -> None:
    em, number = frame.em, len(frame.nests)
    limits = _limits(frame, form)
    largest = replace(form.at_sizes(_Limits(limits)), extents=tuple(
        bound_of(size, limits) for size in form.extents))
    frame.nests.append(NestCall(largest, kernel.params))
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
    status = _status(frame, number, form) if form.nest.has_checks else ""
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
    if status:
        status_word = em.value(f"load i64, ptr {status}")
        frame.fail_unless(em.value(f"icmp eq i64 {status_word}, 0"), ErrorExit(node))


def _limits(frame: Frame, form: LoopForm) -> dict[str, int]:
    """The upper bounds of symbols, or what is typical of those that the call brings: no memory
    depends on it but partial results."""
    unbounded = (symbols_of(form.extents) & frame.outer) - frame.limits.keys()
    if form.mode == "flat" and unbounded:
        raise NotNativeError(f"a sum over a size that only the run knows, {min(unbounded)}")
    return {**dict.fromkeys(frame.outer, TYPICAL), **frame.limits}


class _Limits(dict[str, int]):
    """The upper bounds of symbols; raises `NotNativeError` for a symbol without one."""

    def __missing__(self, name: str) -> int:
        raise NotNativeError(f"the size {name}, which is defined outside of it")


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
