"""The argument block of a nest function: an array of 64-bit slots.

``void nest(ptr block, i64 begin, i64 end)`` does tasks ``begin`` to ``end - 1``.  Slots: base
pointer per operand (first element included), extent per loop, byte strides operand by operand, raw
bits of each parameter, for full reductions the address of the partial results and the number of
tasks, byte strides of computed indices operand by operand, and for nests with checks the address of
a status word, which they set to 1 where a check fails, and that of a record of the first failure
(`indices.RECORD`) or 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fusec.codegen.loop_ir import Param
from fusec.codegen.specialise import LoopForm
from fusec.ir.dims import Dim, Size


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Slot numbers for a form's operands, loops and parameters."""

    operands: int
    loops: int
    params: int
    partials: int
    gathered: tuple[int, ...] = ()  # computed indices of each operand
    checks: bool = False

    @classmethod
    def of(cls, form: LoopForm) -> BlockLayout:
        is_flat = form.mode == "flat"
        return cls(
            len(form.operands), len(form.extents), len(form.params), 2 if is_flat else 0,
            tuple(len(o.gathered) for o in form.operands), form.nest.has_checks,
        )

    def extent(self, loop: int) -> int:
        return self.operands + loop

    def stride(self, operand: int, loop: int) -> int:
        return self.operands + self.loops + operand * self.loops + loop

    def param(self, number: int) -> int:
        return self.operands + self.loops + self.operands * self.loops + number

    @property
    def partial_results(self) -> int:
        return self.param(self.params)

    @property
    def task_count(self) -> int:
        return self.partial_results + 1

    def gathered_stride(self, operand: int, number: int) -> int:
        first = self.param(self.params) + self.partials
        return first + sum(self.gathered[:operand]) + number

    @property
    def status(self) -> int:
        return self.gathered_stride(self.operands, 0)

    @property
    def record(self) -> int:
        return self.status + 1

    @property
    def size(self) -> int:
        return self.status + 2 * self.checks


def raw_bits(dtype: np.dtype, value: object) -> int:
    """A scalar's bytes, zero-extended to a slot."""
    data = np.asarray(value, dtype).tobytes()
    return int.from_bytes(data.ljust(8, b"\0"), "little", signed=True)


def fill_block(form: LoopForm, params: tuple[Param, ...]) -> np.ndarray:
    """A block with everything but pointers; pointers are written per call."""
    layout = BlockLayout.of(form)
    block = np.zeros(layout.size, np.int64)
    block[layout.operands: layout.operands + layout.loops] = form.extents
    for number, operand in enumerate(form.operands):
        for loop, stride in enumerate(operand.strides):
            block[layout.stride(number, loop)] = stride
        for position, stride in enumerate(operand.gathered):
            block[layout.gathered_stride(number, position)] = stride
    for number, param in enumerate(params):
        block[layout.param(number)] = raw_bits(param.dtype, param.value)
    if layout.partials:
        block[layout.task_count] = form.flat_tasks
    return block


def open_words(form: LoopForm) -> Iterator[tuple[int, Size]]:
    """The block's words that are sizes of the run, by slot: extents and strides."""
    layout = BlockLayout.of(form)
    words = [(layout.extent(loop), extent) for loop, extent in enumerate(form.extents)]
    for number, operand in enumerate(form.operands):
        words += [(layout.stride(number, loop), s) for loop, s in enumerate(operand.strides)]
        words += [(layout.gathered_stride(number, k), s) for k, s in enumerate(operand.gathered)]
    return ((slot, size) for slot, size in words if isinstance(size, Dim))
