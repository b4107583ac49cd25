"""The vectorised loop of a stage: whole vectors, then a last, partial step through padding.

The last step may have fewer elements than its vectors have lanes.  Its operands are copied to
padding, which is stack memory; the same vector code runs there; its results are copied back.
Reasons: the code of a long stage is emitted once; absent elements never reach a reduction; every
element is computed by the same instructions as its neighbours.  A short sum reads them under a
mask instead, where the machine has such loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ops.calls.scalar_calls import CALLS

from ...kernels.loop_ir import Stage, walk
from ...kernels.scalar_rules import scalar_cost
from ...kernels.specialise import LoopForm
from ...machine_code.llvm import has_feature
from ..emitter import BOOL, I64, LlvmValue, memory_type
from ..scalars.scalar_ops import emit_operation
from .accumulators import UNROLL, Accumulator, is_cascaded, push_block, sum_block, sum_lanes
from .nest_function import NestFunction

Run = Callable[..., None]
# A stage of less scalar work than this is short.  Short reductions have their code twice, for whole
# and partial steps, instead of a test at each step; short elementwise stages end in a scalar loop.
LONG_COST = 12.0
I32 = np.dtype(np.int32)
I64_LANES = 8  # of vectors of the widest elements
MASKED_SIZES = (4, 8)  # bytes of the elements that AVX2 loads under a mask


def _has_masked_loads() -> bool:
    """Without the instructions a masked load is a branch for each lane."""
    return has_feature("avx2")


def can_vectorise(form: LoopForm, stage: Stage) -> bool:
    """Whether neighbours of the loop are stored in different places."""
    return all(form.stride_class(form.operands[s.access]) != "zero" for s in stage.stores)


def vectors_per_step(stage: Stage, lanes: int) -> int:
    """The number of accumulators that the stage's sums need."""
    sums = [sum_lanes(r.dtype) // lanes for r in stage.reductions if is_cascaded(r)]
    return max(sums, default=UNROLL) if stage.reductions else 1


def is_masked_alone(nest: NestFunction, stage: Stage) -> bool:
    """Whether a short stage's partial step needs no padding."""
    loop = AxisLoop(nest, stage, [], (), lambda *_: None)
    return not loop.is_long and not loop.stores and _has_masked_loads() and all(
        loop.is_masked(k) for k in loop.loads)


class AxisLoop:
    """The loop of one stage; ``run(lanes, position, copy, **where)`` emits one evaluation."""

    def __init__(
        self, nest: NestFunction, stage: Stage, pointers: list[str], accs: Sequence[Accumulator],
        run: Run,
    ) -> None:
        self.nest, self.stage, self.pointers, self.accs, self.run = nest, stage, pointers, accs, run
        self.em, self.lanes = nest.em, nest.lanes
        self.copies = vectors_per_step(stage, nest.lanes)
        self.step = self.lanes * self.copies
        self.needs_valid = bool(stage.reductions or stage.checks) or any(
            (e.op == "load" and e.args) or e.op in CALLS for e in walk(stage.roots))
        # Not through padding: stores at computed indices, which have no place in it, and scans,
        # which would run on over the absent elements.
        cost = sum(scalar_cost(e.op) for e in walk(stage.roots))
        unpadded = any(s.index for s in stage.stores) or any(
            e.op == "scan" for e in walk(stage.roots))
        self.is_long = cost >= LONG_COST and not unpadded
        self.loads, self.stores = self._moving()
        self.masked: set[int] = set()  # of the loads: those of a partial step without padding

    def emit(self, low: str, high: str) -> None:
        """Emit the loop over ``low`` to ``high``."""
        if not can_vectorise(self.nest.form, self.stage):
            self._one_by_one(low, high)
        elif not self.accs:
            self._elementwise(low, high)
        elif any(a.stack for a in self.accs):
            self._blocks(low, high)
        else:
            self._steps(low, high)

    def emit_block(self, low: str, high: str) -> None:
        """Emit it for at most a block of elements, whose total stays in the vectors."""
        self._steps(low, high)

    def _one_by_one(self, low: str, high: str) -> None:
        with self.em.loop(low, high) as i:
            self.run(1, i)

    def _elementwise(self, low: str, high: str) -> None:
        if self.is_long:
            self._padded(low, high)
            return
        whole = self._whole_steps(low, high)
        self._one_by_one(whole, high)

    def _blocks(self, low: str, high: str) -> None:
        """Floating-point sums: the total of each block of elements goes onto the cascade."""
        em = self.em
        cascaded = [a for a in self.accs if a.stack]
        block = sum_block(cascaded[0].dtype)
        if not self.is_long and all(a.once for a in self.accs):
            self._last_block_apart(low, high, block)
            return
        with em.loop(low, high, block) as start:
            end = em.minimum(em.add(start, block), high)
            self._steps(start, end)
            for acc in cascaded:
                push_block(em, acc)

    def _last_block_apart(self, low: str, high: str, block: int) -> None:
        """The same; the last block stays in the vectors: short sums have no other."""
        em = self.em
        before = em.value(f"sub i64 {em.value(f'sub i64 {high}, {low}')}, 1")
        alone = em.value(f"icmp slt i64 {before}, {block}")
        blocks = em.value(f"select i1 {alone}, i64 0, i64 {before}")
        last = em.add(low, em.value(f"and i64 {blocks}, {-block}"))
        with em.loop(low, last, block) as start:
            self._whole_steps(start, em.add(start, block))
            for acc in self.accs:
                if acc.stack:
                    push_block(em, acc)
        self._steps(last, high)
        for acc in self.accs:
            acc.alone = alone if acc.stack else ""

    def _steps(self, low: str, high: str) -> None:
        if self.is_long:
            self._padded(low, high)
        else:
            self._last_step(self._whole_steps(low, high), high)

    # -- whole steps

    def _whole_steps(self, low: str, high: str) -> str:
        """Emit the steps that have all their elements; returns the counter where they end."""
        em = self.em
        count = em.value(f"sub i64 {high}, {low}")
        whole = em.add(low, em.value(f"and i64 {count}, {-self.step}"))
        with em.loop(low, whole, self.step) as i:
            for copy in range(self.copies):
                self.run(self.lanes, em.add(i, copy * self.lanes), copy)
        return whole

    # -- steps of which the last may be partial

    def _padded(self, low: str, high: str) -> None:
        """Whole steps, then a partial one if elements are left, as two rounds of one loop.

        The places of operands and the number of elements of a step do not change in a
        round: the loop keeps it, and its accumulators, in registers.
        """
        em = self.em
        pads = self._pads()
        count = em.value(f"sub i64 {high}, {low}")
        end_of_whole = em.add(low, em.value(f"and i64 {count}, {-self.step}"))
        with em.loop(0, "2") as number:
            partial = em.value(f"icmp eq i64 {number}, 1")
            start = em.value(f"select i1 {partial}, i64 {end_of_whole}, i64 {low}")
            end = em.value(f"select i1 {partial}, i64 {high}, i64 {end_of_whole}")
            length = em.value(f"sub i64 {end}, {start}")
            moves = em.value(f"and i1 {partial}, {em.value(f'icmp sgt i64 {length}, 0')}")
            real = {k: self._address(k, start) for k in pads}
            with em.branch(moves):
                self._fill_all(pads, real, length)
            self._round(partial, start, length, {
                k: em.value(f"select i1 {partial}, ptr {pads[k]}, ptr {real[k]}") for k in pads})
            if self.stores:
                with em.branch(moves):
                    self._flush_all(pads, real, length)

    def _last_step(self, low: str, high: str) -> None:
        """A partial step if elements are left."""
        em, pads = self.em, self._pads(has_masks=_has_masked_loads())
        left = em.value(f"sub i64 {high}, {low}")
        with em.branch(em.value(f"icmp sgt i64 {left}, 0")):
            real = {k: self._address(k, low) for k in pads}
            self._fill_all(pads, real, left)
            strides = {k: self._stride(k, "true") for k in pads}
            self._step(low, pads, strides, self._valid_parts(left))
            self._flush_all(pads, real, left)

    def _round(self, partial: str, start: str, length: str, sources: dict[int, str]) -> None:
        """The steps from ``start`` on, ``sources``: where the first one's elements are."""
        em = self.em
        strides = {k: self._stride(k, partial) for k in sources}
        left = em.value(f"select i1 {partial}, i64 {length}, i64 {self.step}")
        valid = self._valid_parts(left)
        with em.loop(0, length, self.step) as i:
            addresses = {k: em.offset(p, em.mul(strides[k], i)) for k, p in sources.items()}
            self._step(em.add(start, i), addresses, strides, valid)

    def _step(
        self, position: str, addresses: dict[int, str], strides: dict[int, str],
        valid: Sequence[LlvmValue | None],
    ) -> None:
        """One step, a part for each accumulator."""
        em = self.em
        for copy in range(self.copies):
            first = copy * self.lanes
            here = addresses if not copy else {
                k: em.offset(p, em.mul(strides[k], first)) for k, p in addresses.items()}
            self.run(self.lanes, em.add(position, first), copy, addresses=here,
                     strides=strides, valid=valid[copy])

    def _valid_parts(self, left: str) -> list[LlvmValue | None]:
        if not self.needs_valid:
            return [None] * self.copies
        return [self._valid(left, copy * self.lanes) for copy in range(self.copies)]

    def _valid(self, left: str, first: int) -> LlvmValue:
        """The mask of lanes that hold elements, of ``left`` that a step has.

        It is compared in numbers as wide as the elements, which is how a mask is kept.
        """
        em = self.em
        if self.lanes <= I64_LANES:
            ends = em.splat(LlvmValue(left, I64, 1), self.lanes)
            return emit_operation(em, "lt", BOOL, [em.iota(str(first), self.lanes), ends])
        narrow = LlvmValue(em.value(f"trunc i64 {left} to i32"), I32, 1)
        steps = ", ".join(f"i32 {first + k}" for k in range(self.lanes))
        ends = em.splat(narrow, self.lanes)
        return emit_operation(em, "lt", BOOL, [LlvmValue(f"<{steps}>", I32, self.lanes), ends])

    def _moving(self) -> tuple[list[int], list[int]]:
        """The operands that the stage loads, and stores, at addresses that vary along the loop."""
        form = self.nest.form
        loads = {e.attr for e in walk(self.stage.roots) if e.op == "load" and not e.args}
        stores = {s.access for s in self.stage.stores}
        moving = [k for k, o in enumerate(form.operands) if form.stride_class(o) != "zero"]
        return [k for k in moving if k in loads], [k for k in moving if k in stores]

    def _pads(self, has_masks: bool = False) -> dict[int, str]:
        """Padding of each operand that moves; with masks, neighbours are read where they are."""
        self.masked = {k for k in self.loads if has_masks and self.is_masked(k)}
        padded = dict.fromkeys((*self.loads, *self.stores))
        return {k: self._padding(k) for k in padded if k not in self.masked}

    def is_masked(self, number: int) -> bool:
        return (self._is_unit(number) and number not in self.stores
                and self._itemsize(number) in MASKED_SIZES)

    def _padding(self, number: int) -> str:
        """Zeroed stack memory for one step of an operand."""
        em, dtype = self.em, self.nest.form.operands[number].dtype
        size = self.step * max(1, self.nest.form.near_stride(number) // dtype.itemsize)
        kind = f"[{size} x {memory_type(dtype)}]"
        slot = em.alloca(kind, "pad")
        em.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        em.line(f"call void @llvm.memset.p0.i64(ptr {slot}, i8 0, "
                f"i64 {size * dtype.itemsize}, i1 false)")
        return slot

    def _is_unit(self, number: int) -> bool:
        form = self.nest.form
        return form.stride_class(form.operands[number]) == "unit"

    def _itemsize(self, number: int) -> int:
        return self.nest.form.operands[number].dtype.itemsize

    def _address(self, number: int, position: str) -> str:
        em, pointer = self.em, self.pointers[number]
        if self._is_unit(number):
            kind = memory_type(self.nest.form.operands[number].dtype)
            return em.value(f"getelementptr {kind}, ptr {pointer}, i64 {position}", "p")
        return em.offset(pointer, em.mul(self._real_stride(number), position))

    def _real_stride(self, number: int) -> str:
        return self.nest.stride[number][self.nest.form.axis]

    def _stride(self, number: int, partial: str) -> str:
        """The bytes between lanes in a partial step: those of the padding; else of the operand."""
        size, near = self._itemsize(number), self.nest.form.near_stride(number)
        if self._is_unit(number) or near:
            return str(near or size)
        return self.em.value(f"select i1 {partial}, i64 {size}, i64 {self._real_stride(number)}")

    # -- moving elements to padding and back

    def _fill_all(self, pads: dict[int, str], real: dict[int, str], left: str) -> None:
        for k in self.loads:
            if k in self.masked:
                continue
            self._fill(k, pads[k], real[k], left)

    def _flush_all(self, pads: dict[int, str], real: dict[int, str], left: str) -> None:
        for k in self.stores:
            self._flush(k, pads[k], real[k], left)

    def _fill(self, number: int, pad: str, real: str, left: str) -> None:
        if self._is_unit(number):
            self._copy(pad, real, left, number)
            return
        self._copy_strided(number, left, (pad, self._pad_stride(number)),
                           (real, self._real_stride(number)))

    def _flush(self, number: int, pad: str, real: str, left: str) -> None:
        if self._is_unit(number):
            self._copy(real, pad, left, number)
            return
        self._copy_strided(number, left, (real, self._real_stride(number)),
                           (pad, self._pad_stride(number)))

    def _pad_stride(self, number: int) -> str:
        return str(self.nest.form.near_stride(number) or self._itemsize(number))

    def _copy(self, target: str, source: str, count: str, number: int) -> None:
        em = self.em
        em.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        size = em.mul(count, self._itemsize(number))
        em.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, "
                f"i1 false)")

    def _copy_strided(
        self, number: int, count: str, target: tuple[str, str], source: tuple[str, str]
    ) -> None:
        em, dtype = self.em, self.nest.form.operands[number].dtype
        with em.loop(0, count) as k:
            value: Any = em.load(em.offset(source[0], em.mul(source[1], k)), dtype, 1)
            em.store(em.offset(target[0], em.mul(target[1], k)), value)
