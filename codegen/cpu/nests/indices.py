"""Computed indices: their check, and loads at them.

A failed check is noted, never acted on: the index becomes 0, which is in range, and the function
ends by setting the status word of its argument block, which discards the results.  Where the block
has a record too, that receives the first failure: see `RECORD` of `native_nest`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.core.records import dataclass

from ..emitter import I64, UNLIKELY, LlvmEmitter, LlvmValue, memory_type, scalar_type, vector_type
from ..scalars.instructions import binary, both, compare, negated, select

_NOTE = """define internal void @note_failure(
    ptr %record, i64 %check, i64 %begin, i64 %index, i64 %size) noinline nounwind cold {
entry:
  br label %wait
wait:
  %others = atomicrmw xchg ptr %record, i64 1 acquire, align 8
  %free = icmp eq i64 %others, 0
  br i1 %free, label %held, label %wait
held:
  %check.at = getelementptr i64, ptr %record, i64 1
  %begin.at = getelementptr i64, ptr %record, i64 2
  %index.at = getelementptr i64, ptr %record, i64 3
  %size.at = getelementptr i64, ptr %record, i64 4
  %check.old = load i64, ptr %check.at
  %begin.old = load i64, ptr %begin.at
  %before = icmp ult i64 %check, %check.old
  %same = icmp eq i64 %check, %check.old
  %earlier = icmp ult i64 %begin, %begin.old
  %tie = and i1 %same, %earlier
  %first = or i1 %before, %tie
  br i1 %first, label %write, label %done
write:
  store i64 %check, ptr %check.at
  store i64 %begin, ptr %begin.at
  store i64 %index, ptr %index.at
  store i64 %size, ptr %size.at
  br label %done
done:
  store atomic i64 0, ptr %record release, align 8
  ret void
}"""


@dataclass
class FailureFlags:
    """Stack memory for the first failed check of a call of the function: check, index, size.

    Checks are met in the order of the elements, so of each one the first failure is kept.
    """

    em: LlvmEmitter
    slot: str = ""

    def note(
        self, bad: LlvmValue, check: int = 0, index: LlvmValue | None = None,
        size: LlvmValue | None = None,
    ) -> None:
        """Keep the index of the first lane where ``bad`` holds."""
        em = self.em
        if not self.slot:
            self.slot = em.alloca("[3 x i64]", "failed")
            em.allocas.append(f"  store i64 -1, ptr {self.slot}")
        lane, any_bad = "0", bad.text
        if bad.lanes > 1:
            bits = em.value(f"bitcast {bad} to i{bad.lanes}")
            any_bad = em.value(f"icmp ne i{bad.lanes} {bits}, 0")
        with em.branch(any_bad, UNLIKELY):
            before = em.value(f"load i64, ptr {self.slot}")
            with em.branch(em.value(f"icmp ult i64 {check}, {before}")):
                if bad.lanes > 1:
                    lane = _first_set(em, bits, bad.lanes)
                words = (str(check), _lane_of(em, index, lane), _lane_of(em, size, lane))
                for number, word in enumerate(words):
                    em.line(f"store i64 {word}, ptr {self._word(number)}")

    def _word(self, number: int) -> str:
        return self.em.value(f"getelementptr i64, ptr {self.slot}, i64 {number}")

    def report(self, status: str, record: str) -> None:
        """Where a check failed set the word at address ``status``, and the record if there is one.
        """
        em = self.em
        check, index, size = (em.value(f"load i64, ptr {self._word(k)}") for k in range(3))
        with em.branch(em.value(f"icmp ne i64 {check}, -1"), UNLIKELY):
            em.line(f"store atomic i64 1, ptr {status} monotonic, align 8")
            em.functions["note_failure"] = _NOTE
            with em.branch(em.value(f"icmp ne ptr {record}, null")):
                em.line(f"call void @note_failure(ptr {record}, i64 {check}, i64 %begin, "
                        f"i64 {index}, i64 {size})")


def _first_set(em: LlvmEmitter, bits: str, width: int) -> str:
    em.declare(f"declare i{width} @llvm.cttz.i{width}(i{width}, i1)")
    lane = em.value(f"call i{width} @llvm.cttz.i{width}(i{width} {bits}, i1 true)")
    return em.value(f"zext i{width} {lane} to i64")


def _lane_of(em: LlvmEmitter, x: LlvmValue | None, lane: str) -> str:
    if x is None or x.lanes == 1:
        return x.text if x is not None else "0"
    return em.value(f"extractelement {x}, i64 {lane}")


def check_index(
    em: LlvmEmitter, number: int, index: LlvmValue, size: LlvmValue, valid: LlvmValue | None,
    flags: FailureFlags,
) -> LlvmValue:
    """The wrapped index, 0 where it is out of range; ``valid``: lanes that hold elements."""
    lanes = index.lanes
    limit = em.splat(size, lanes)
    zero = em.const(I64, 0, lanes)
    negative = compare(em, "slt", index, zero)
    wrapped = select(em, negative, binary(em, "add", I64, index, limit), index)
    bad = compare(em, "uge", wrapped, limit)
    flags.note(bad if valid is None or lanes == 1 else both(em, bad, valid), number, index, size)
    return select(em, bad, zero, wrapped)


def verify(
    em: LlvmEmitter, number: int, holds: LlvmValue, valid: LlvmValue | None, flags: FailureFlags
) -> LlvmValue:
    """The condition itself; a failed check where it is false in a lane that holds an element."""
    bad = negated(em, holds)
    flags.note(bad if valid is None or bad.lanes == 1 else both(em, bad, valid), number)
    return holds


Part = tuple[LlvmValue, str]  # an index and the byte stride of its axis


def offset_of(em: LlvmEmitter, parts: Sequence[Part], lane: int = 0) -> str:
    """Bytes: the sum of indices times strides, for one lane."""
    total = ""
    for index, stride in parts:
        one = index if index.lanes == 1 else em.lane(index, lane)
        step = em.mul(one.text, stride)
        total = em.add(total, step) if total else step
    return total


def load_at(em: LlvmEmitter, pointer: str, parts: Sequence[Part], dtype: np.dtype) -> LlvmValue:
    """Lanes at computed indices, one by one: as quick as the hardware's gather, on any CPU."""
    lanes = max(index.lanes for index, _ in parts)
    places = [em.offset(pointer, offset_of(em, parts, k)) for k in range(lanes)]
    return _joined(em, places, dtype)


def load_elements(em: LlvmEmitter, pointer: str, index: LlvmValue, dtype: np.dtype) -> LlvmValue:
    """The same along an axis whose elements are neighbours: no multiplications."""
    kind = memory_type(dtype)
    lanes = [index] if index.lanes == 1 else [em.lane(index, k) for k in range(index.lanes)]
    places = [em.value(f"getelementptr {kind}, ptr {pointer}, {one}", "p") for one in lanes]
    return _joined(em, places, dtype)


def _joined(em: LlvmEmitter, places: Sequence[str], dtype: np.dtype) -> LlvmValue:
    if len(places) == 1:
        return em.load(places[0], dtype, 1)
    kind, text = vector_type(scalar_type(dtype), len(places)), "poison"
    for k, place in enumerate(places):
        one = em.load(place, dtype, 1)
        text = em.value(f"insertelement {kind} {text}, {one}, i64 {k}")
    return LlvmValue(text, dtype, len(places))


def load_valid(
    em: LlvmEmitter, pointer: str, dtype: np.dtype, lanes: int, valid: LlvmValue | None
) -> LlvmValue:
    """Neighbouring elements, of which only the valid lanes are touched."""
    if valid is None or lanes == 1:
        return em.load(pointer, dtype, lanes)
    kind = vector_type(memory_type(dtype), lanes)
    suffix = f"v{lanes}{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}.p0"
    em.declare(f"declare {kind} @llvm.masked.load.{suffix}(ptr, i32, <{lanes} x i1>, {kind})")
    text = em.value(f"call {kind} @llvm.masked.load.{suffix}(ptr {pointer}, i32 {dtype.itemsize}, "
                    f"{valid}, {kind} zeroinitializer)")
    if dtype.kind == "b":
        text = em.value(f"icmp ne {kind} {text}, zeroinitializer")
    return LlvmValue(text, dtype, lanes)

