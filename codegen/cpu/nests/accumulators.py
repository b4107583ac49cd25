"""Accumulators of reductions: lanes in registers, a pairwise cascade for floating-point sums.

Definition of a floating-point sum over n consecutive elements, the same in every kernel and for
every thread count: element i goes to lane ``i % sum_lanes``; lanes are added over blocks of
`sum_block` elements (absent elements of the last one count as 0), a block's lanes are folded in
halves to `STACK_LANES`, block totals are added as a binary counter adds carries (pairwise
summation: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2), then the
remaining lanes are folded in halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field

from ...kernels.loop_ir import Reduction
from ..emitter import BOOL, I64, LlvmEmitter, LlvmValue, scalar_type, vector_type
from ..scalars.instructions import compare
from ..scalars.scalar_ops import emit_operation

UNROLL = 2  # vectors in flight for reductions whose order does not matter
STACK_LANES = 8
CASCADE_DEPTH = 48
NO_INDEX = 2**63 - 1


def is_cascaded(r: Reduction) -> bool:
    return r.kind in ("add", "mul") and r.dtype.kind == "f"


def sum_lanes(dtype: np.dtype) -> int:
    """Lanes of a floating-point sum: two vectors of two AVX2 registers."""
    return 128 // dtype.itemsize


def sum_block(dtype: np.dtype) -> int:
    """Elements per block: 16 additions deep in each lane."""
    return 16 * sum_lanes(dtype)


def is_indexed(r: Reduction) -> bool:
    return r.kind in ("argmin", "argmax")


def identity_of(kind: str, dtype: np.dtype) -> Any:
    """The value that changes nothing: the start of an accumulator."""
    if kind in ("add", "or"):
        return 0
    if kind == "mul":
        return 1
    if kind == "and":
        return True if dtype == BOOL else -1
    lowest = kind in ("maximum", "argmax")
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype == BOOL:
        return not lowest
    info = np.iinfo(dtype)
    return info.min if lowest else info.max


@dataclass
class Accumulator:
    """Allocas of one reduction: its vectors, their positions, and a cascade stack if needed."""

    reduction: Reduction
    lanes: int
    slots: list[str] = field(default_factory=list)
    indices: list[str] = field(default_factory=list)
    stack: str = ""
    count: str = ""
    once: bool = False  # one loop fills it
    alone: str = ""  # then: whether all elements are of one block, none of it on the stack

    @property
    def dtype(self) -> np.dtype:
        """The dtype of compared or added elements (for argmin not the result's)."""
        return self.reduction.value.dtype

    @property
    def kind(self) -> str:
        return self.reduction.kind


def make_accumulator(
    em: LlvmEmitter, reduction: Reduction, lanes: int, copies: int, cascade: bool
) -> Accumulator:
    """Allocate and initialise ``copies`` vectors."""
    acc = Accumulator(reduction, lanes)
    kind = vector_type(scalar_type(acc.dtype), lanes)
    acc.slots = [em.alloca(kind, "acc") for _ in range(copies)]
    if is_indexed(reduction):
        acc.indices = [em.alloca(vector_type("i64", lanes), "at") for _ in range(copies)]
    if cascade and is_cascaded(reduction) and lanes > 1:
        stacked = vector_type(scalar_type(acc.dtype), STACK_LANES)
        acc.stack = em.alloca(f"[{CASCADE_DEPTH} x {stacked}]", "stack")
        acc.count = em.alloca("i64", "count", 8)
        em.line(f"store i64 0, ptr {acc.count}")
    reset(em, acc)
    return acc


def reset(em: LlvmEmitter, acc: Accumulator) -> None:
    """Start the vectors anew; sums on the cascade stay."""
    start = em.const(acc.dtype, identity_of(acc.kind, acc.dtype), acc.lanes)
    for slot in acc.slots:
        em.line(f"store {start}, ptr {slot}")
    for slot in acc.indices:
        em.line(f"store {em.const(I64, NO_INDEX, acc.lanes)}, ptr {slot}")


def _read(em: LlvmEmitter, slot: str, dtype: np.dtype, lanes: int) -> LlvmValue:
    kind = vector_type(scalar_type(dtype), lanes)
    return LlvmValue(em.value(f"load {kind}, ptr {slot}"), dtype, lanes)


def accumulate(
    em: LlvmEmitter, acc: Accumulator, value: LlvmValue, copy: int, index: str, along: bool = True
) -> None:
    """Combine one vector (or scalar) of elements.

    ``index`` is the position of the first lane; lanes are neighbours when the vector lies along the
    reduced axis, and all at this position otherwise.
    """
    lanes = value.lanes
    slot = acc.slots[copy % len(acc.slots)]
    old = _read(em, slot, acc.dtype, lanes)
    if not is_indexed(acc.reduction):
        combined = emit_operation(em, acc.kind, acc.dtype, [old, value])
        em.line(f"store {combined}, ptr {slot}")
        return
    at = acc.indices[copy % len(acc.slots)]
    positions = em.iota(index, lanes) if along else em.splat(LlvmValue(index, I64, 1), lanes)
    take = _wins(em, acc.kind, old, value)
    where = _op(em, "select", take, positions, _read(em, at, I64, lanes))
    em.line(f"store {_op(em, 'select', take, value, old)}, ptr {slot}")
    em.line(f"store {where}, ptr {at}")


Indexed = tuple[LlvmValue, LlvmValue]


def _op(em: LlvmEmitter, name: str, *args: LlvmValue) -> LlvmValue:
    dtype = args[-1].dtype if name in ("and", "or", "not", "select") else BOOL
    return emit_operation(em, name, dtype, list(args))


def _wins(em: LlvmEmitter, kind: str, old: LlvmValue, new: LlvmValue) -> LlvmValue:
    """Whether a later element beats an earlier one: it is better, or the first NaN.

    Positions grow within a lane (loops of argmin keep their order), so ties need no look at them.
    """
    larger = kind == "argmax"
    if old.dtype.kind != "f":
        return _op(em, "gt" if larger else "lt", new, old)
    beats = compare(em, "ugt" if larger else "ult", new, old)
    return _op(em, "and", beats, _op(em, "eq", old, old))


def _position_or_first(em: LlvmEmitter, position: LlvmValue) -> LlvmValue:
    """The position; the first where no element beat the start, all being as bad as can be."""
    none = _op(em, "eq", position, em.const(I64, NO_INDEX, position.lanes))
    return _op(em, "select", none, em.const(I64, 0, position.lanes), position)


def _better(em: LlvmEmitter, kind: str, old: Indexed, new: Indexed) -> Indexed:
    """The better of two (value, position) pairs: first NaN, else extremum, else first position."""
    (a, i), (b, j) = old, new
    wins = _op(em, "gt" if kind == "argmax" else "lt", b, a)
    ties = _op(em, "eq", a, b)
    if a.dtype.kind == "f":
        a_nan, b_nan = _op(em, "isnan", a), _op(em, "isnan", b)
        wins = _op(em, "or", wins, _op(em, "and", b_nan, _op(em, "not", a_nan)))
        ties = _op(em, "or", ties, _op(em, "and", a_nan, b_nan))
    take = _op(em, "or", wins, _op(em, "and", ties, _op(em, "lt", j, i)))
    return _op(em, "select", take, b, a), _op(em, "select", take, j, i)


def push_block(em: LlvmEmitter, acc: Accumulator) -> None:
    """Move the block's total onto the cascade and start a new block."""
    total = _folded(em, acc, STACK_LANES)
    symbol = _cascade_function(em, acc, total.type)
    em.line(f"call void @{symbol}(ptr {acc.stack}, ptr {acc.count}, {total})")
    reset(em, acc)


def _folded(em: LlvmEmitter, acc: Accumulator, lanes: int) -> LlvmValue:
    """All vectors as one of ``lanes`` lanes, always adding the upper half to the lower."""
    parts = [_read(em, s, acc.dtype, acc.lanes) for s in acc.slots]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [
            emit_operation(em, acc.kind, acc.dtype, [parts[k], parts[k + half]])
            for k in range(half)
        ]
    return _across(em, acc.kind, parts[0], lanes)


def _cascade_function(em: LlvmEmitter, acc: Accumulator, kind: str) -> str:
    """``push``: add equal-sized totals like carries of a binary counter."""
    symbol = f"fusec.push.{acc.kind}.{scalar_type(acc.dtype)}"
    instruction = {"add": "fadd", "mul": "fmul"}[acc.kind]
    em.functions.setdefault(symbol, f"""define internal void @{symbol}(
    ptr %stack, ptr %count, {kind} %total) nounwind {{
entry:
  %n = load i64, ptr %count
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %count
  %ones = call i64 @llvm.ctpop.i64(i64 %n)
  br label %head
head:
  %m = phi i64 [ %n, %entry ], [ %m1, %carry ]
  %top = phi i64 [ %ones, %entry ], [ %top1, %carry ]
  %t = phi {kind} [ %total, %entry ], [ %t1, %carry ]
  %bit = and i64 %m, 1
  %set = icmp ne i64 %bit, 0
  br i1 %set, label %carry, label %done
carry:
  %top1 = sub i64 %top, 1
  %p = getelementptr {kind}, ptr %stack, i64 %top1
  %s = load {kind}, ptr %p
  %t1 = {instruction} {kind} %s, %t
  %m1 = lshr i64 %m, 1
  br label %head
done:
  %q = getelementptr {kind}, ptr %stack, i64 %top
  store {kind} %t, ptr %q
  ret void
}}""")
    em.declare("declare i64 @llvm.ctpop.i64(i64)")
    return symbol


def finish_lanes(em: LlvmEmitter, acc: Accumulator) -> LlvmValue:
    """Every lane's own total: for vectors that lie across the reduced axis."""
    if is_indexed(acc.reduction):
        return _position_or_first(em, _read(em, acc.indices[0], I64, acc.lanes))
    return _read(em, acc.slots[0], acc.dtype, acc.lanes)


def finish(em: LlvmEmitter, acc: Accumulator) -> tuple[LlvmValue, LlvmValue | None]:
    """The accumulator's total as a scalar (with its position for argmin and argmax)."""
    if is_indexed(acc.reduction):
        return _finish_indexed(em, acc)
    if acc.stack:
        return _across(em, acc.kind, _fold_cascade(em, acc), 1), None
    return _folded(em, acc, 1), None


def finish_block(em: LlvmEmitter, acc: Accumulator) -> LlvmValue:
    """The total of the vectors, by the same additions as a block's on the stack."""
    return _folded(em, acc, 1)


def finish_once(em: LlvmEmitter, accs: Sequence[Accumulator]) -> list[LlvmValue]:
    """The totals of sums whose last block is still in the vectors; alone, it needs no stack.

    The bits are those of the stack, which adds a total to the identity.
    """
    slots = [em.alloca(vector_type(scalar_type(a.dtype), STACK_LANES), "total") for a in accs]
    with em.either(accs[0].alone) as otherwise:
        for acc, slot in zip(accs, slots, strict=True):
            em.store(slot, _folded(em, acc, STACK_LANES))
        otherwise()
        for acc, slot in zip(accs, slots, strict=True):
            push_block(em, acc)
            em.store(slot, _fold_cascade(em, acc))
    return [_across(em, acc.kind, em.load(slot, acc.dtype, STACK_LANES), 1)
            for acc, slot in zip(accs, slots, strict=True)]


def _fold_cascade(em: LlvmEmitter, acc: Accumulator) -> LlvmValue:
    """Add the totals on the stack, smallest first."""
    kind = vector_type(scalar_type(acc.dtype), STACK_LANES)
    slot = em.alloca(kind, "total")
    start = em.const(acc.dtype, identity_of(acc.kind, acc.dtype), STACK_LANES)
    em.line(f"store {start}, ptr {slot}")
    count = em.value(f"load i64, ptr {acc.count}")
    em.declare("declare i64 @llvm.ctpop.i64(i64)")
    depth = em.value(f"call i64 @llvm.ctpop.i64(i64 {count})")
    last = em.value(f"sub i64 {depth}, 1")
    with em.loop(0, depth) as step:
        place = em.value(f"sub i64 {last}, {step}")
        pointer = em.value(f"getelementptr {kind}, ptr {acc.stack}, i64 {place}")
        below = _read(em, pointer, acc.dtype, STACK_LANES)
        old = _read(em, slot, acc.dtype, STACK_LANES)
        combined = emit_operation(em, acc.kind, acc.dtype, [below, old])
        em.line(f"store {combined}, ptr {slot}")
    return _read(em, slot, acc.dtype, STACK_LANES)


def _halves(em: LlvmEmitter, vector: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    half = vector.lanes // 2
    parts = []
    for start in (0, half):
        picks = ", ".join(f"i32 {start + k}" for k in range(half))
        text = em.value(
            f"shufflevector {vector}, {vector.type} poison, <{half} x i32> <{picks}>"
        )
        part = LlvmValue(text, vector.dtype, half)
        parts.append(part if half > 1 else em.lane(part_as_vector(part), 0))
    return parts[0], parts[1]


def part_as_vector(part: LlvmValue) -> LlvmValue:
    """A one-lane shuffle result is still a vector to LLVM."""
    return _OneLane(part.text, part.dtype, 1)


class _OneLane(LlvmValue):
    __slots__ = ()

    @property
    def type(self) -> str:
        return f"<1 x {scalar_type(self.dtype)}>"

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def _across(em: LlvmEmitter, kind: str, vector: LlvmValue, lanes: int) -> LlvmValue:
    """Combine the upper half of the lanes with the lower one until ``lanes`` are left."""
    while vector.lanes > lanes:
        low, high = _halves(em, vector)
        vector = emit_operation(em, kind, vector.dtype, [low, high])
    return vector


def _finish_indexed(em: LlvmEmitter, acc: Accumulator) -> Indexed:
    def pair(copy: int) -> Indexed:
        value = _read(em, acc.slots[copy], acc.dtype, acc.lanes)
        return value, _read(em, acc.indices[copy], I64, acc.lanes)

    best = pair(0)
    for copy in range(1, len(acc.slots)):
        best = _better(em, acc.kind, best, pair(copy))
    while best[0].lanes > 1:
        (low, high), (low_at, high_at) = _halves(em, best[0]), _halves(em, best[1])
        best = _better(em, acc.kind, (low, low_at), (high, high_at))
    return best[0], _position_or_first(em, best[1])


def combine_pairs(em: LlvmEmitter, reduction: Reduction, a: Indexed, b: Indexed) -> Indexed:
    """Combine two finished results (of two tasks)."""
    if is_indexed(reduction):
        return _better(em, reduction.kind, a, b)
    dtype = reduction.value.dtype
    return emit_operation(em, reduction.kind, dtype, [a[0], b[0]]), a[1]
