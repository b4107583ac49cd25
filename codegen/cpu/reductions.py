"""Accumulators of reductions: lanes in registers, a pairwise cascade for floating-point sums.

Definition of a floating-point sum over n consecutive elements (the same in every kernel and for
every thread count): blocks of `BLOCK_VECTORS` vectors are added lane by lane, block totals are
added as a binary counter adds carries (pairwise summation: Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., section 4.2), then lanes pairwise, then the scalar remainder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fusec.codegen.loop_ir import Reduction

from .emitter import BOOL, I64, Emitter, Operand, scalar_type, vector_type
from .scalar_ops import emit_operation

UNROLL = 2
BLOCK_VECTORS = 32  # vectors per block: 16 additions deep in each of the UNROLL chains
CASCADE_DEPTH = 48
NO_INDEX = 2**63 - 1


def is_cascaded(r: Reduction) -> bool:
    return r.kind in ("add", "mul") and r.dtype.kind == "f"


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
    """Allocas of one reduction: UNROLL vectors, one scalar, and a cascade stack if needed."""

    reduction: Reduction
    lanes: int
    slots: dict[int, list[str]] = field(default_factory=dict)  # lanes -> slots
    indices: dict[int, list[str]] = field(default_factory=dict)
    stack: str = ""
    count: str = ""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of what is compared or added (for argmin not the result's)."""
        return self.reduction.value.dtype

    @property
    def kind(self) -> str:
        return self.reduction.kind


def make_accumulator(
    em: Emitter, reduction: Reduction, lanes: int, unroll: int, cascade: bool
) -> Accumulator:
    """Allocate and initialise."""
    acc = Accumulator(reduction, lanes)
    widths = [(lanes, unroll)] if lanes == 1 else [(lanes, unroll), (1, 1)]
    for width, copies in widths:
        element = scalar_type(acc.dtype)
        acc.slots[width] = [em.alloca(vector_type(element, width), "acc") for _ in range(copies)]
        if is_indexed(reduction):
            acc.indices[width] = [
                em.alloca(vector_type("i64", width), "at") for _ in range(copies)
            ]
    if cascade and is_cascaded(reduction) and lanes > 1:
        kind = vector_type(scalar_type(acc.dtype), lanes)
        acc.stack = em.alloca(f"[{CASCADE_DEPTH} x {kind}]", "stack")
        acc.count = em.alloca("i64", "count", 8)
    reset(em, acc)
    return acc


def reset(em: Emitter, acc: Accumulator) -> None:
    for width, slots in acc.slots.items():
        start = em.const(acc.dtype, identity_of(acc.kind, acc.dtype), width)
        for slot in slots:
            em.line(f"store {start}, ptr {slot}")
        for slot in acc.indices.get(width, ()):
            em.line(f"store {em.const(I64, NO_INDEX, width)}, ptr {slot}")
    if acc.count:
        em.line(f"store i64 0, ptr {acc.count}")


def _read(em: Emitter, slot: str, dtype: np.dtype, lanes: int) -> Operand:
    kind = vector_type(scalar_type(dtype), lanes)
    return Operand(em.value(f"load {kind}, ptr {slot}"), dtype, lanes)


def accumulate(
    em: Emitter, acc: Accumulator, value: Operand, copy: int, index: str, along: bool = True
) -> None:
    """Combine one vector (or scalar) of elements.

    ``index`` is the position of the first lane; lanes are neighbours when the vector lies along the
    reduced axis, and all at this position otherwise.
    """
    lanes = value.lanes
    slot = acc.slots[lanes][copy]
    old = _read(em, slot, acc.dtype, lanes)
    if not is_indexed(acc.reduction):
        combined = emit_operation(em, acc.kind, acc.dtype, [old, value])
        em.line(f"store {combined}, ptr {slot}")
        return
    at = acc.indices[lanes][copy]
    positions = em.iota(index, lanes) if along else em.splat(Operand(index, I64, 1), lanes)
    best, where = _better(em, acc.kind, (old, _read(em, at, I64, lanes)), (value, positions))
    em.line(f"store {best}, ptr {slot}")
    em.line(f"store {where}, ptr {at}")


Indexed = tuple[Operand, Operand]


def _op(em: Emitter, name: str, *args: Operand) -> Operand:
    dtype = args[-1].dtype if name in ("and", "or", "not", "select") else BOOL
    return emit_operation(em, name, dtype, list(args))


def _better(em: Emitter, kind: str, old: Indexed, new: Indexed) -> Indexed:
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


def push_block(em: Emitter, acc: Accumulator) -> None:
    """Move the block's total onto the cascade and start a new block."""
    total = _fold_copies(em, acc)
    kind = vector_type(scalar_type(acc.dtype), acc.lanes)
    symbol = _cascade_function(em, acc, kind)
    em.line(f"call void @{symbol}(ptr {acc.stack}, ptr {acc.count}, {total})")
    start = em.const(acc.dtype, identity_of(acc.kind, acc.dtype), acc.lanes)
    for slot in acc.slots[acc.lanes]:
        em.line(f"store {start}, ptr {slot}")


def _fold_copies(em: Emitter, acc: Accumulator) -> Operand:
    parts = [_read(em, s, acc.dtype, acc.lanes) for s in acc.slots[acc.lanes]]
    total = parts[0]
    for part in parts[1:]:
        total = emit_operation(em, acc.kind, acc.dtype, [total, part])
    return total


def _cascade_function(em: Emitter, acc: Accumulator, kind: str) -> str:
    """``push``: add equal-sized totals like carries of a binary counter."""
    symbol = f"fusec.push.{acc.kind}.{scalar_type(acc.dtype)}.{acc.lanes}"
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


def finish_lanes(em: Emitter, acc: Accumulator) -> Operand:
    """Every lane's own total: for vectors that lie across the reduced axis."""
    if is_indexed(acc.reduction):
        return _read(em, acc.indices[acc.lanes][0], I64, acc.lanes)
    return _read(em, acc.slots[acc.lanes][0], acc.dtype, acc.lanes)


def finish(em: Emitter, acc: Accumulator) -> tuple[Operand, Operand | None]:
    """The accumulator's total as a scalar (with its position for argmin and argmax)."""
    if is_indexed(acc.reduction):
        return _finish_indexed(em, acc)
    scalar = _read(em, acc.slots[1][0], acc.dtype, 1)
    if acc.lanes == 1:
        return scalar, None
    total = _fold_copies(em, acc)
    if acc.stack:
        total = _fold_cascade(em, acc, total)
    return emit_operation(em, acc.kind, acc.dtype, [_across(em, acc.kind, total), scalar]), None


def _fold_cascade(em: Emitter, acc: Accumulator, total: Operand) -> Operand:
    """Add what lies on the stack, smallest totals first."""
    slot = acc.slots[acc.lanes][0]
    em.line(f"store {total}, ptr {slot}")
    count = em.value(f"load i64, ptr {acc.count}")
    em.declare("declare i64 @llvm.ctpop.i64(i64)")
    depth = em.value(f"call i64 @llvm.ctpop.i64(i64 {count})")
    last = em.value(f"sub i64 {depth}, 1")
    with em.loop(0, depth) as step:
        place = em.value(f"sub i64 {last}, {step}")
        pointer = em.value(f"getelementptr {total.type}, ptr {acc.stack}, i64 {place}")
        below = Operand(em.value(f"load {total.type}, ptr {pointer}"), acc.dtype, acc.lanes)
        old = _read(em, slot, acc.dtype, acc.lanes)
        combined = emit_operation(em, acc.kind, acc.dtype, [below, old])
        em.line(f"store {combined}, ptr {slot}")
    return _read(em, slot, acc.dtype, acc.lanes)


def _halves(em: Emitter, vector: Operand) -> tuple[Operand, Operand]:
    half = vector.lanes // 2
    parts = []
    for start in (0, half):
        picks = ", ".join(f"i32 {start + k}" for k in range(half))
        text = em.value(
            f"shufflevector {vector}, {vector.type} poison, <{half} x i32> <{picks}>"
        )
        part = Operand(text, vector.dtype, half)
        parts.append(part if half > 1 else em.lane(part_as_vector(part), 0))
    return parts[0], parts[1]


def part_as_vector(part: Operand) -> Operand:
    """A one-lane shuffle result is still a vector to LLVM."""
    return _OneLane(part.text, part.dtype, 1)


class _OneLane(Operand):
    __slots__ = ()

    @property
    def type(self) -> str:
        return f"<1 x {scalar_type(self.dtype)}>"

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def _across(em: Emitter, kind: str, vector: Operand) -> Operand:
    """Combine lanes pairwise, upper half with lower half."""
    while vector.lanes > 1:
        low, high = _halves(em, vector)
        vector = emit_operation(em, kind, vector.dtype, [low, high])
    return vector


def _finish_indexed(em: Emitter, acc: Accumulator) -> Indexed:
    def pair(lanes: int, copy: int) -> Indexed:
        value = _read(em, acc.slots[lanes][copy], acc.dtype, lanes)
        return value, _read(em, acc.indices[lanes][copy], I64, lanes)

    if acc.lanes == 1:
        return pair(1, 0)
    best = pair(acc.lanes, 0)
    for copy in range(1, len(acc.slots[acc.lanes])):
        best = _better(em, acc.kind, best, pair(acc.lanes, copy))
    while best[0].lanes > 1:
        (low, high), (low_at, high_at) = _halves(em, best[0]), _halves(em, best[1])
        best = _better(em, acc.kind, (low, low_at), (high, high_at))
    return _better(em, acc.kind, best, pair(1, 0))


def combine_pairs(em: Emitter, reduction: Reduction, a: Indexed, b: Indexed) -> Indexed:
    """Combine two finished results (of two tasks)."""
    if is_indexed(reduction):
        return _better(em, reduction.kind, a, b)
    dtype = reduction.value.dtype
    return emit_operation(em, reduction.kind, dtype, [a[0], b[0]]), a[1]
