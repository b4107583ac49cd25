"""Statements of lanes that run together: registers are vectors, and a mask says which lanes count.

Other lanes are computed too, and nobody sees it: variables keep what they had, memory is
neither read nor written, checks do not ask.  No operation of fusec's traps.  Where no lane is left
a branch is jumped over, unless it is a few operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Operand, Register, Variable, View, is_zero

from ..emitter import (
    BOOL,
    I64,
    LlvmValue,
    memory_type,
    scalar_type,
    vector_type,
)
from ..loops import numbers
from ..loops.frame import Frame
from ..loops.polls import enter, in_chunks, poll
from ..scalars.instructions import both, compare, negated, select
from .divergence import Divergence, Region, side

SHORT = 8  # statements that are not worth a jump


class LaneVectors:
    """The state of printing: ``mask`` are the lanes that count now, in ``region``."""

    def __init__(self, frame: Frame, divergence: Divergence, lanes: int, failed: str) -> None:
        self.frame, self.em, self.divergence = frame, frame.em, divergence
        self.lanes, self.failed = lanes, failed  # the label of where a check has failed
        self.index = LlvmValue("", I64, lanes)
        self.mask = LlvmValue("", BOOL, lanes)
        self.region: Region = "body"
        self.merged: dict[Register, str] = {}  # kept while other lanes run: their memory

    @contextmanager
    def among(self, mask: LlvmValue, region: Region) -> Iterator[None]:
        """What is printed inside is for these lanes."""
        before = self.mask, self.region
        self.mask, self.region = mask, region
        yield
        self.mask, self.region = before

    def block(self, block: s.Block) -> None:
        for statement in block:
            _PRINT[type(statement)](self, statement)

    # -- values

    def operand(self, operand: Operand) -> LlvmValue:
        return self.frame.operand(operand)

    def whole(self, operand: Operand) -> LlvmValue:
        """A vector, also where all lanes have the same."""
        return self.em.splat(self.operand(operand), self.lanes)

    def define(self, register: Register, value: LlvmValue) -> None:
        slot = self.merged.get(register)
        if slot is not None:
            value = self.chosen(value, slot)
        self.frame.values[register] = value

    def chosen(self, value: LlvmValue, slot: str) -> LlvmValue:
        """The value in lanes that count, in others what the slot has; it is there afterwards."""
        kind = value.type
        before = LlvmValue(self.em.value(f"load {kind}, ptr {slot}"), value.dtype, self.lanes)
        value = select(self.em, self.mask, self.em.splat(value, self.lanes), before)
        self.em.line(f"store {value}, ptr {slot}")
        return value

    def slot(self, kind: str) -> str:
        """Memory that LLVM makes registers of."""
        return self.em.alloca(kind, "lanes")

    def mask_type(self) -> str:
        return vector_type("i1", self.lanes)

    def any(self, mask: LlvmValue) -> str:
        return self.em.value(f"icmp ne i{self.lanes} {self.bits(mask)}, 0")

    def bits(self, mask: LlvmValue) -> str:
        return self.em.value(f"bitcast {mask} to i{self.lanes}")

    def count(self, mask: LlvmValue) -> str:
        kind = f"i{self.lanes}"
        self.em.declare(f"declare {kind} @llvm.ctpop.{kind}({kind})")
        return self.em.value(f"call {kind} @llvm.ctpop.{kind}({kind} {self.bits(mask)})")

    # -- memory

    def address(self, view: View) -> tuple[str, bool]:
        """Of the first element: a pointer, or one of each lane; whether they are several."""
        em, frame = self.em, self.frame
        base, kind = frame.base(view.memory), "ptr"
        for operand, element in ((view.offset, "i8"), (view.element, memory_type(view.dtype))):
            if is_zero(operand):
                continue
            moved = self.operand(operand)
            base = em.value(f"getelementptr {element}, {kind} {base}, {moved}", "p")
            if moved.lanes > 1:
                kind = f"<{self.lanes} x ptr>"
        return base, kind != "ptr"


# ----------------------------------------------------------------------------------------- numbers


def _let(v: LaneVectors, x: s.Let) -> None:
    v.define(x.result, numbers.computed(v.frame, x, [v.operand(a) for a in x.args]))


def _number(v: LaneVectors, x: s.Number) -> None:
    text = v.frame.word("number", x.value) if isinstance(x.value, int) else v.frame.number(x.value)
    v.frame.values[x.result] = LlvmValue(text, I64, 1)


def _declare(v: LaneVectors, x: s.Declare) -> None:
    thing = x.thing
    assert isinstance(thing, Variable)
    if thing not in v.divergence.varying:
        v.frame.slots[thing] = v.frame.variable(thing.dtype)
        return
    kind = vector_type(scalar_type(thing.dtype), v.lanes)
    slot = v.frame.slots[thing] = v.slot(kind)
    # Lanes that do not count have numbers too: a jump on none in particular has no meaning.
    empty = f"store {kind} zeroinitializer, ptr {slot}"
    if v.region == "first":
        v.frame.entry.append(f"  {empty}")  # other lanes have theirs by now
    else:
        v.em.line(empty)


def _get(v: LaneVectors, x: s.Get) -> None:
    variable, dtype = x.variable, x.result.dtype
    if variable is v.divergence.lane:
        v.frame.values[x.result] = v.index
    elif variable in v.divergence.varying:
        kind = vector_type(scalar_type(dtype), v.lanes)
        text = v.em.value(f"load {kind}, ptr {v.frame.slots[variable]}")
        v.define(x.result, LlvmValue(text, dtype, v.lanes))
    else:
        v.frame.values[x.result] = v.em.load(v.frame.slots[variable], dtype, 1)


def _set(v: LaneVectors, x: s.Set) -> None:
    variable = x.variable
    if variable is v.divergence.lane:
        return
    slot = v.frame.slots[variable]
    if variable not in v.divergence.varying:
        v.em.store(slot, v.operand(x.value))
    elif v.divergence.homes[variable] == v.region != "first":
        v.em.line(f"store {v.whole(x.value)}, ptr {slot}")
    else:
        v.chosen(v.whole(x.value), slot)


# ------------------------------------------------------------------------------------------ memory


def _load(v: LaneVectors, x: s.Load) -> None:
    em, dtype = v.em, x.result.dtype
    place, are_several = v.address(x.place)
    if not are_several:
        v.define(x.result, em.load(place, dtype, 1))
        return
    kind, suffix = _memory_vector(v, x.place)
    pointers = f"<{v.lanes} x ptr>"
    name = f"@llvm.masked.gather.{suffix}.v{v.lanes}p0"
    em.declare(f"declare {kind} {name}({pointers}, i32, {v.mask_type()}, {kind})")
    text = em.value(f"call {kind} {name}({pointers} {place}, i32 {dtype.alignment}, {v.mask}, "
                    f"{kind} zeroinitializer)")
    if dtype == BOOL:
        text = em.value(f"icmp ne {kind} {text}, zeroinitializer")
    v.define(x.result, LlvmValue(text, dtype, v.lanes))


def _store(v: LaneVectors, x: s.Store) -> None:
    em, value = v.em, v.whole(x.value)
    place, _ = v.address(x.place)
    kind, suffix = _memory_vector(v, x.place)
    text, pointers = value.text, f"<{v.lanes} x ptr>"
    if value.dtype == BOOL:
        text = em.value(f"zext {value} to {kind}")
    name = f"@llvm.masked.scatter.{suffix}.v{v.lanes}p0"
    em.declare(f"declare void {name}({kind}, {pointers}, i32, {v.mask_type()})")
    em.line(f"call void {name}({kind} {text}, {pointers} {place}, i32 {value.dtype.alignment}, "
            f"{v.mask})")


def _memory_vector(v: LaneVectors, view: View) -> tuple[str, str]:
    """The type of a vector of elements as they lie in memory, and its name among intrinsics."""
    element = memory_type(view.dtype)
    letter = "f" if view.dtype.kind == "f" else "i"
    bits = 8 * view.dtype.itemsize
    return vector_type(element, v.lanes), f"v{v.lanes}{letter}{bits}"


# ----------------------------------------------------------------------------------------- control


def _check(v: LaneVectors, x: s.Check) -> None:
    em, holds = v.em, v.operand(x.condition)
    if holds.lanes == 1:
        bad = em.value(f"xor {holds}, true")
    else:
        bad = v.any(both(em, v.mask, negated(em, holds)))
    good = em.fresh("good")
    em.line(f"br i1 {bad}, label %{v.failed}, label %{good}")
    em.label(good)


def _if(v: LaneVectors, x: s.If) -> None:
    em, condition = v.em, v.operand(x.condition)
    if condition.lanes == 1:
        with em.either(condition.text) as otherwise:
            v.block(x.then)
            otherwise()
            v.block(x.orelse or ())
        return
    taken = both(em, v.mask, condition)
    other = both(em, v.mask, negated(em, condition))
    for mask, name, block in ((taken, "then", x.then), (other, "orelse", x.orelse or ())):
        if block:
            _side(v, mask, side(x, name), block)


def _side(v: LaneVectors, mask: LlvmValue, region: Region, block: s.Block) -> None:
    with v.among(mask, region):
        if len(block) <= SHORT and all(isinstance(x, (s.Let, s.Get, s.Set, s.Number))
                                       for x in block):
            v.block(block)
            return
        with v.em.branch(v.any(mask)):
            v.block(block)


def _while(v: LaneVectors, x: s.While) -> None:
    if v.divergence.parts_ways(x):
        while_any(v, x)
        return
    with v.em.while_loop() as (_, done):
        v.block(x.test)
        enter(v.frame, v.frame.text_of(x.condition), done)
        v.block(x.body)


def while_any(v: LaneVectors, x: s.While, keep_going: str = "") -> LlvmValue:
    """The loop, while more lanes than ``keep_going`` go on, or any; those that would after it."""
    em, slot = v.em, v.slot(v.mask_type())
    em.line(f"store {v.mask}, ptr {slot}")
    after = v.slot(v.mask_type())
    with em.while_loop() as (_, done):
        running = LlvmValue(em.value(f"load {v.mask_type()}, ptr {slot}"), BOOL, v.lanes)
        with v.among(running, side(x, "test")):
            v.block(x.test)
        going = both(em, running, v.whole(x.condition))
        em.line(f"store {going}, ptr {after}")
        on = v.any(going) if not keep_going else em.value(
            f"icmp ugt i{v.lanes} {v.count(going)}, {keep_going}")
        enter(v.frame, on, done)
        with v.among(going, side(x, "body")):
            v.block(x.body)
        em.line(f"store {going}, ptr {slot}")
    return LlvmValue(em.value(f"load {v.mask_type()}, ptr {after}"), BOOL, v.lanes)


def _counted_loop(v: LaneVectors, x: s.CountedLoop) -> None:
    em, frame, slot = v.em, v.frame, v.frame.slots[x.variable]
    if not v.divergence.parts_ways(x):
        with in_chunks(frame, 2 * x.cost, slot, frame.text_of(x.limit)):
            v.block(x.body)
        return
    kind, own = vector_type("i64", v.lanes), v.slot(v.mask_type())
    em.line(f"store {v.mask}, ptr {own}")
    with em.while_loop() as (_, done):
        running = LlvmValue(em.value(f"load {v.mask_type()}, ptr {own}"), BOOL, v.lanes)
        counter = LlvmValue(em.value(f"load {kind}, ptr {slot}"), I64, v.lanes)
        going = both(em, running, compare(em, "slt", counter, v.whole(x.limit)))
        enter(frame, v.any(going), done)
        poll(frame, str(x.cost))
        with v.among(going, side(x, "body")):
            v.block(x.body)
        em.line(f"store {going}, ptr {own}")


_PRINT: dict[type, Callable[[LaneVectors, Any], None]] = {
    s.Let: _let, s.Number: _number, s.Declare: _declare, s.Get: _get, s.Set: _set,
    s.Load: _load, s.Store: _store, s.Check: _check, s.If: _if, s.While: _while,
    s.CountedLoop: _counted_loop, s.Poll: lambda v, x: poll(v.frame, str(2 * x.cost)),
}
