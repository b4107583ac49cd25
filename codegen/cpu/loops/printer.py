"""Prints statements of the structured IR as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from fusec.codegen.cpu.emitter import BOOL, I64, LlvmValue
from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Memory, Variable

from ..lanes.choice import choose_lanes
from ..lanes.lane_loops import print_vectors
from . import callbacks, draws, functions, kernels, numbers
from .copying import copy, stepped
from .frame import Frame
from .polls import enter, in_chunks, poll, spend


def print_block(frame: Frame, block: s.Block) -> None:
    """Every statement of a block, in order."""
    for statement in block:
        start = len(frame.em.lines)
        _PRINT[type(statement)](frame, statement)
        frame.em.note(start, statement)


# ------------------------------------------------------------------------------ numbers and memory


def _number(frame: Frame, statement: s.Number) -> None:
    value = statement.value
    text = frame.word("number", value) if isinstance(value, int) else frame.number(value)
    frame.values[statement.result] = LlvmValue(text, I64, 1)


def _input(frame: Frame, statement: s.Input) -> None:
    result = statement.result
    address = frame.scalar_address("scalar", statement.position, result.dtype)
    frame.values[result] = frame.em.load(address, result.dtype, 1)


def _output(frame: Frame, statement: s.Output) -> None:
    value = frame.operand(statement.value)
    frame.em.store(frame.scalar_address("result", statement.position, value.dtype), value)


def _declare(frame: Frame, statement: s.Declare) -> None:
    thing = statement.thing
    if isinstance(thing, Variable):
        frame.slots[thing] = frame.variable(thing.dtype)
        return
    frame.slots[thing] = _MEMORY[thing.origin](frame, thing)
    if thing.left >= 0:
        frame.left[thing.left] = frame.slots[thing]


def _given(frame: Frame, memory: Memory) -> str:
    return frame.slot(frame.early_word(memory.origin, memory.position, "ptr"))


_MEMORY: dict[str, Callable[[Frame, Memory], str]] = {
    "operand": _given, "target": _given, "temp": Frame.fresh_memory, "zeros": Frame.fresh_memory,
    "parameter": lambda frame, memory: frame.slot(functions.parameter_address(memory)),
    "alias": lambda frame, memory: frame.em.alloca("ptr", "array", 8),
}


def _get(frame: Frame, statement: s.Get) -> None:
    result = statement.result
    frame.values[result] = frame.em.load(frame.slots[statement.variable], result.dtype, 1)


def _set(frame: Frame, statement: s.Set) -> None:
    frame.em.store(frame.slots[statement.variable], frame.operand(statement.value))


def _define_size(frame: Frame, statement: s.DefineSize) -> None:
    frame.define(statement.symbol, frame.text_of(statement.value))


def _load(frame: Frame, statement: s.Load) -> None:
    result = statement.result
    frame.values[result] = frame.em.load(frame.address(statement.place), result.dtype, 1)


def _store(frame: Frame, statement: s.Store) -> None:
    frame.em.store(frame.address(statement.place), frame.operand(statement.value))


def _exchange(frame: Frame, statement: s.Exchange) -> None:
    pairs = statement.pairs
    every = dict.fromkeys([*(first for first, _ in pairs), *(second for _, second in pairs)])
    address = {memory: frame.base(memory) for memory in every}
    for first, second in pairs:
        frame.em.line(f"store ptr {address[second]}, ptr {frame.slots[first]}")


def _point(frame: Frame, statement: s.Point) -> None:
    frame.em.line(f"store ptr {frame.base(statement.at)}, ptr {frame.slots[statement.alias]}")


def _point_into(frame: Frame, statement: s.PointInto) -> None:
    em, condition = frame.em, frame.text_of(statement.condition)
    inside, other = frame.address(statement.place), frame.base(statement.orelse)
    chosen = em.value(f"select i1 {condition}, ptr {inside}, ptr {other}")
    em.line(f"store ptr {chosen}, ptr {frame.slots[statement.alias]}")


def _is_at(frame: Frame, statement: s.IsAt) -> None:
    em, here = frame.em, frame.base(statement.memory)
    equal, joined = ("ne", "and") if statement.elsewhere else ("eq", "or")
    lies = [em.value(f"icmp {equal} ptr {here}, {frame.base(m)}") for m in statement.others]
    text = lies[0]
    for one in lies[1:]:
        text = em.value(f"{joined} i1 {text}, {one}")
    frame.values[statement.result] = LlvmValue(text, BOOL, 1)


def _nonzero(frame: Frame, statement: s.Nonzero) -> None:
    em, source = frame.em, statement.source
    begin, end = frame.address(source), frame.address(statement.indices)
    length, taken = frame.number(source.shape[0]), frame.variable(I64)
    em.store(taken, em.const(I64, 0))
    spend(frame, length)
    with em.loop(0, length) as counter:
        place = em.load(taken, I64, 1).text
        em.store(em.offset(end, em.mul(place, str(I64.itemsize))), LlvmValue(counter, I64, 1))
        element = em.load(stepped(frame, begin, counter, source.strides[0], source),
                          source.dtype, 1)
        kind = "fcmp une" if source.dtype.kind == "f" else "icmp ne"
        zero = em.const(source.dtype, 0)
        is_one = em.value(f"{kind} {element}, {zero.text}")
        more = em.value(f"zext i1 {is_one} to i64")
        em.store(taken, LlvmValue(em.add(place, more), I64, 1))
    frame.values[statement.count] = em.load(taken, I64, 1)


# ----------------------------------------------------------------------------------------- control


def _check(frame: Frame, statement: s.Check) -> None:
    condition, index, size = (
        frame.text_of(x) for x in (statement.condition, statement.index, statement.size))
    frame.fail_unless(condition, statement.exit, index, size)


def _check_indices(frame: Frame, statement: s.CheckIndices) -> None:
    em, view, size = frame.em, statement.indices, frame.operand(statement.size)
    address = frame.address(view)
    with ExitStack() as stack:
        for extent, stride in zip(view.shape, view.strides, strict=True):
            counter = stack.enter_context(em.loop(0, frame.number(extent)))
            address = stepped(frame, address, counter, stride, view)
        index = em.load(address, view.dtype, 1)
        real = numbers.wrap_index(em, [index, size]).text
        inside = em.value(f"icmp ult i64 {real}, {size.text}")
        frame.fail_unless(inside, statement.exit, index.text, size.text)


def _if(frame: Frame, statement: s.If) -> None:
    em, condition = frame.em, frame.text_of(statement.condition)
    if statement.orelse is None:
        with em.branch(condition):
            print_block(frame, statement.then)
        return
    then, orelse, after = em.fresh("then"), em.fresh("else"), em.fresh("after")
    em.line(f"br i1 {condition}, label %{then}, label %{orelse}")
    for label, block in ((then, statement.then), (orelse, statement.orelse)):
        em.label(label)
        print_block(frame, block)
        em.line(f"br label %{after}")
    em.label(after)


def _while(frame: Frame, statement: s.While) -> None:
    if statement.lanes is not None:
        _vectors(frame, statement)
    with frame.em.while_loop() as (_, done):
        print_block(frame, statement.test)
        enter(frame, frame.text_of(statement.condition), done)
        print_block(frame, statement.body)


def _vectors(frame: Frame, loop: s.While | s.CountedLoop) -> None:
    """Vectors of lanes, where these are chosen, before the loop over single lanes."""
    choice = choose_lanes(loop, frame.lane_count)
    frame.lanes.append(choice.told)
    if choice.divergence is not None:
        print_vectors(frame, choice, print_block)
        frame.lanes_together = max(frame.lanes_together, choice.lanes)


def _counted_loop(frame: Frame, statement: s.CountedLoop) -> None:
    if statement.lanes:
        _vectors(frame, statement)
    limit = frame.text_of(statement.limit)
    with in_chunks(frame, statement.cost, frame.slots[statement.variable], limit):
        print_block(frame, statement.body)


_PRINT: dict[type, Callable[[Frame, Any], None]] = {
    s.Number: _number, s.Let: numbers.let, s.Input: _input, s.Output: _output,
    s.CallScalar: numbers.call_scalar, s.Declare: _declare, s.Get: _get, s.Set: _set,
    s.DefineSize: _define_size, s.Load: _load, s.Store: _store, s.Copy: copy,
    s.Exchange: _exchange, s.Point: _point, s.PointInto: _point_into, s.IsAt: _is_at,
    s.Nonzero: _nonzero,
    s.RunKernel: kernels.run_kernel, s.CallPython: callbacks.call,
    s.CanDraw: draws.can_draw, s.Draw: draws.draw,
    s.DefineFunction: lambda frame, statement: functions.define(frame, statement, print_block),
    s.CallFunction: functions.call, s.Check: _check, s.CheckIndices: _check_indices, s.If: _if,
    s.While: _while, s.CountedLoop: _counted_loop,
    s.Poll: lambda frame, statement: poll(frame, str(statement.cost)),
}
