"""Computed indices: their check, and loads at them.

A failed check is noted, never acted on: the index becomes 0, which is in range, and the function
ends by setting the status word of its argument block, which discards the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .emitter import I64, Emitter, Operand, memory_type, scalar_type, vector_type
from .instructions import binary, both, compare, select


@dataclass
class FailureFlags:
    """Stack memory, a vector for each number of lanes, in which failed checks leave ones."""

    em: Emitter
    flags: dict[int, str] = field(default_factory=dict)

    def note(self, bad: Operand) -> None:
        """Remember whether any of these booleans is true."""
        em, kind = self.em, vector_type("i64", bad.lanes)
        slot = self.flags.get(bad.lanes)
        if slot is None:
            slot = self.flags[bad.lanes] = em.alloca(kind, "failed")
            em.allocas.append(f"  store {kind} zeroinitializer, ptr {slot}")
        old = Operand(em.value(f"load {kind}, ptr {slot}"), I64, bad.lanes)
        wide = Operand(em.value(f"sext {bad} to {kind}"), I64, bad.lanes)
        em.line(f"store {binary(em, 'or', I64, old, wide)}, ptr {slot}")

    def report(self, status: str) -> None:
        """Set the word at address ``status`` to 1 if any check failed."""
        em = self.em
        for lanes, slot in self.flags.items():
            seen = em.value(f"load {vector_type('i64', lanes)}, ptr {slot}")
            if lanes > 1:
                seen = em.intrinsic_of_vector("vector.reduce.or", Operand(seen, I64, lanes)).text
            with em.branch(em.value(f"icmp ne i64 {seen}, 0")):
                em.line(f"store atomic i64 1, ptr {status} monotonic, align 8")


def check_index(
    em: Emitter, index: Operand, size: Operand, valid: Operand | None, flags: FailureFlags
) -> Operand:
    """The wrapped index, 0 where it is out of range; ``valid``: lanes that hold elements."""
    lanes = index.lanes
    size = em.splat(size, lanes)
    zero = em.const(I64, 0, lanes)
    negative = compare(em, "slt", index, zero)
    wrapped = select(em, negative, binary(em, "add", I64, index, size), index)
    bad = compare(em, "uge", wrapped, size)
    flags.note(bad if valid is None or lanes == 1 else both(em, bad, valid))
    return select(em, bad, zero, wrapped)


Part = tuple[Operand, str]  # an index and the byte stride of its axis


def offset_of(em: Emitter, parts: Sequence[Part], lane: int = 0) -> str:
    """Bytes: the sum of indices times strides, for one lane."""
    total = ""
    for index, stride in parts:
        one = index if index.lanes == 1 else em.lane(index, lane)
        step = em.mul(one.text, stride)
        total = em.add(total, step) if total else step
    return total


def load_at(em: Emitter, pointer: str, parts: Sequence[Part], dtype: np.dtype) -> Operand:
    """Lanes at computed indices, one by one: as quick as the hardware's gather, on any CPU."""
    lanes = max(index.lanes for index, _ in parts)
    places = [em.offset(pointer, offset_of(em, parts, k)) for k in range(lanes)]
    return _joined(em, places, dtype)


def load_elements(em: Emitter, pointer: str, index: Operand, dtype: np.dtype) -> Operand:
    """The same along an axis whose elements are neighbours: no multiplications."""
    kind = memory_type(dtype)
    lanes = [index] if index.lanes == 1 else [em.lane(index, k) for k in range(index.lanes)]
    places = [em.value(f"getelementptr {kind}, ptr {pointer}, {one}", "p") for one in lanes]
    return _joined(em, places, dtype)


def _joined(em: Emitter, places: Sequence[str], dtype: np.dtype) -> Operand:
    if len(places) == 1:
        return em.load(places[0], dtype, 1)
    kind, text = vector_type(scalar_type(dtype), len(places)), "poison"
    for k, place in enumerate(places):
        one = em.load(place, dtype, 1)
        text = em.value(f"insertelement {kind} {text}, {one}, i64 {k}")
    return Operand(text, dtype, len(places))


def load_valid(
    em: Emitter, pointer: str, dtype: np.dtype, lanes: int, valid: Operand | None
) -> Operand:
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
    return Operand(text, dtype, lanes)

