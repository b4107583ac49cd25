"""The loop over vectors of lanes.

Where lanes part ways in one loop of theirs, a lane that ended gives its place to the next one that
waits: statements after the loop are done for those that ended, those before it for those that
begin.  The last one goes on by itself: a chain of scalar operations takes less time than one of
vectors.  Else a vector of lanes is one iteration.

A check that fails leaves all to the loop over single lanes, which comes next in the code: it begins
with the first lane that has not ended, and raises what that lane raises.
"""

from __future__ import annotations

from typing import Any

from ..emitter import BOOL, I64, LlvmValue, scalar_type, vector_type
from ..loops.frame import Frame
from ..scalars.instructions import binary, both, compare, either, negated, select
from .choice import LaneChoice
from .divergence import Divergence, registers_defined, registers_read
from .last_lane import LastLane, Print
from .vectors import LaneVectors, while_any


def print_vectors(frame: Frame, choice: LaneChoice, print_block: Print) -> None:
    """Lanes from the variable's value on; it is then the limit, or the first lane that is left.

    ``print_block`` is the printer of what runs by itself.
    """
    divergence = choice.divergence
    assert divergence is not None and choice.lane is not None and choice.limit is not None
    em, values = frame.em, dict(frame.values)
    failed, after = em.fresh("failed"), em.fresh("lanes_done")
    vectors = LaneVectors(frame, divergence, choice.lanes, failed)
    slot, limit = frame.slots[choice.lane], frame.text_of(choice.limit)
    first = em.load(slot, I64, 1).text
    several = em.value(f"icmp sgt i64 {limit}, {em.add(first, 1)}")
    with em.branch(several):
        loop: _InStep | _Replacing
        if divergence.split < 0:
            loop = _InStep(vectors, first, limit)
        else:
            loop = _Replacing(vectors, first, limit, choice.keep_going, print_block)
        loop.print()
        em.line(f"store i64 {limit}, ptr {slot}")
        em.line(f"br label %{after}")
        em.label(failed)
        em.line(f"store i64 {loop.first_left()}, ptr {slot}")
        em.line(f"br label %{after}")
        em.label(after)
    frame.values = values


class _InStep:
    """Vectors of neighbouring lanes, one after the other."""

    def __init__(self, vectors: LaneVectors, first: str, limit: str) -> None:
        self.vectors, self.limit = vectors, limit
        self.next = vectors.em.alloca("i64", "next", 8)
        vectors.em.line(f"store i64 {first}, ptr {self.next}")

    def print(self) -> None:
        v, em = self.vectors, self.vectors.em
        with em.while_loop() as (_, done):
            start, inside = em.load(self.next, I64, 1).text, em.fresh("inside")
            em.line(f"br i1 {em.value(f'icmp slt i64 {start}, {self.limit}')}, label %{inside}, "
                    f"label %{done}")
            em.label(inside)
            v.index = em.iota(start, v.lanes)
            mask = compare(em, "slt", v.index, em.splat(LlvmValue(self.limit, I64, 1), v.lanes))
            with v.among(mask, "body"):
                v.block(v.divergence.body)
            em.line(f"store i64 {em.add(start, v.lanes)}, ptr {self.next}")

    def first_left(self) -> str:
        return self.vectors.em.load(self.next, I64, 1).text


class _Replacing:
    """Lanes in the order of a queue, of which ``next`` is the first that has not begun."""

    def __init__(
        self, vectors: LaneVectors, first: str, limit: str, keep_going: int, print_block: Print
    ) -> None:
        self.vectors, self.limit, self.keep_going = vectors, limit, keep_going
        self.print_block = print_block
        v, em = vectors, vectors.em
        self.next = em.alloca("i64", "next", 8)
        self.index, self.live = v.slot(vector_type("i64", v.lanes)), v.slot(v.mask_type())
        em.line(f"store i64 {first}, ptr {self.next}")
        em.line(f"store {vector_type('i64', v.lanes)} zeroinitializer, ptr {self.index}")
        em.line(f"store {v.mask_type()} zeroinitializer, ptr {self.live}")

    def print(self) -> None:
        v, em, divergence = self.vectors, self.vectors.em, self.vectors.divergence
        body: Any = divergence.body
        first, loop, last = (
            body[:divergence.split], body[divergence.split], body[divergence.split + 1:])
        self._keep(divergence, first, (loop, *last))
        with em.while_loop() as (_, done):
            live = self._loaded(self.live, BOOL)
            fresh = self._begin(live)
            live = either(em, live, fresh)
            em.line(f"store {live}, ptr {self.live}")
            with v.among(fresh, "first"):
                v.block(first)
            inside, going = em.fresh("inside"), v.slot(v.mask_type())
            em.line(f"br i1 {v.any(live)}, label %{inside}, label %{done}")
            em.label(inside)
            with em.either(self._is_last(live)) as otherwise:
                LastLane(v, loop, live).print(self.print_block)
                em.line(f"store {v.mask_type()} zeroinitializer, ptr {going}")
                otherwise()
                with v.among(live, "body"):
                    em.line(f"store {while_any(v, loop, self._least())}, ptr {going}")
            on = self._loaded(going, BOOL)
            with v.among(both(em, live, negated(em, on)), "last"):
                v.block(last)
            em.line(f"store {on}, ptr {self.live}")

    def _waits(self) -> str:
        em = self.vectors.em
        return em.value(f"icmp slt i64 {em.load(self.next, I64, 1).text}, {self.limit}")

    def _is_last(self, live: LlvmValue) -> str:
        """Whether one lane runs, and no other one is to come."""
        v, em = self.vectors, self.vectors.em
        one = em.value(f"icmp eq i{v.lanes} {v.count(live)}, 1")
        return em.value(f"select i1 {self._waits()}, i1 false, i1 {one}")

    def _loaded(self, slot: str, dtype: Any) -> LlvmValue:
        em, lanes = self.vectors.em, self.vectors.lanes
        kind = vector_type(scalar_type(dtype), lanes)
        return LlvmValue(em.value(f"load {kind}, ptr {slot}"), dtype, lanes)

    def _keep(self, divergence: Divergence, first: Any, others: Any) -> None:
        """What lanes compute before their loop stays theirs while others begin."""
        v = self.vectors
        for register in registers_defined(first) & registers_read(others):
            if register in divergence.varying:
                kind = vector_type(scalar_type(register.dtype), v.lanes)
                v.merged[register] = v.slot(kind)
                v.em.line(f"store {kind} zeroinitializer, ptr {v.merged[register]}")

    def _begin(self, live: LlvmValue) -> LlvmValue:
        """Places without a lane get the next ones, in order; which places do."""
        v, em = self.vectors, self.vectors.em
        free, start = negated(em, live), em.load(self.next, I64, 1)
        given = binary(em, "add", I64, em.splat(start, v.lanes), self._rank(free))
        inside = compare(em, "slt", given, em.splat(LlvmValue(self.limit, I64, 1), v.lanes))
        fresh = both(em, free, inside)
        v.index = select(em, fresh, given, self._loaded(self.index, I64))
        em.line(f"store {v.index}, ptr {self.index}")
        count = em.value(f"zext i{v.lanes} {v.count(free)} to i64")
        em.store(self.next, LlvmValue(em.minimum(em.add(start.text, count), self.limit), I64, 1))
        return fresh

    def _rank(self, free: LlvmValue) -> LlvmValue:
        """How many free places come before each."""
        v, em = self.vectors, self.vectors.em
        bits = LlvmValue(em.value(f"zext i{v.lanes} {v.bits(free)} to i64"), I64, 1)
        before = ", ".join(f"i64 {(1 << k) - 1}" for k in range(v.lanes))
        masked = em.value(f"and {em.splat(bits, v.lanes)}, <{before}>")
        return em.intrinsic("ctpop", I64, v.lanes, LlvmValue(masked, I64, v.lanes))

    def _least(self) -> str:
        """With as many lanes going or fewer the loop is left."""
        em, kind = self.vectors.em, f"i{self.vectors.lanes}"
        return em.value(f"select i1 {self._waits()}, {kind} {self.keep_going}, {kind} 1")

    def first_left(self) -> str:
        """The first lane that runs, or is about to."""
        v, em = self.vectors, self.vectors.em
        mine = select(em, self._loaded(self.live, BOOL), self._loaded(self.index, I64),
                      em.const(I64, (1 << 63) - 1, v.lanes))
        return em.minimum(em.intrinsic_of_vector("vector.reduce.smin", mine).text,
                          em.load(self.next, I64, 1).text)
