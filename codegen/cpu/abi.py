"""The argument block of a nest function: an array of 64-bit slots.

``void nest(ptr block, i64 begin, i64 end)`` runs tasks ``begin`` to ``end - 1``.  The slots, in
order:

- the base pointer of each operand, which points at the first element that is accessed;
- the extent (trip count) of each loop;
- the byte strides of each operand, a slot for each loop;
- the raw bits of each parameter;
- for full reductions: the address of the partial results, and the number of tasks;
- the byte strides of each operand's computed indices;
- for nests with checks: the address of a status word, which a failed check sets to 1, and the
  address of the failure record (`RECORD` of `fusec.codegen.machine_code.native_nest`), or 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.ir.lazy_values import asked_once
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.symbolic_numbers import Symbolic

from ..kernels.loop_ir import Param
from ..kernels.specialise import MAP_BLOCK, LoopForm, tasks_of
from ..machine_code.native_nest import NONE, NestBlock
from ..plan.block_templates import OpenBlock
from .work import point_ns


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Slot numbers for a form's operands, loops and parameters."""

    operands: int
    loops: int
    params: int
    partials: int
    gathered: tuple[int, ...] = ()  # the number of computed indices of each operand
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
    """The words of a block, all but the pointers, which each call writes."""
    return _with_params(_sizes_in_block(form, BlockLayout.of(form)), form, params)


def _sizes_in_block(form: LoopForm, layout: BlockLayout) -> np.ndarray:
    block = np.zeros(layout.size, np.int64)
    for slot, size in _sizes(form, layout):
        block[slot] = size
    if layout.partials:
        block[layout.task_count] = form.flat_tasks
    return block


def _with_params(block: np.ndarray, form: LoopForm, params: tuple[Param, ...]) -> np.ndarray:
    first = BlockLayout.of(form).param(0)
    block[first: first + len(params)] = [raw_bits(p.dtype, p.value) for p in params]
    return block


def _sizes(form: LoopForm, layout: BlockLayout) -> Iterator[tuple[int, Size]]:
    """The slots of extents and strides, with these."""
    for loop, extent in enumerate(form.extents):
        yield layout.extent(loop), extent
    for number, operand in enumerate(form.operands):
        for loop, stride in enumerate(operand.strides):
            yield layout.stride(number, loop), stride
        for k, stride in enumerate(operand.gathered):
            yield layout.gathered_stride(number, k), stride


def open_words(form: LoopForm) -> Iterator[tuple[int, Size]]:
    """The slots that take run-time sizes (extents and strides), with these sizes."""
    return ((slot, size) for slot, size in _sizes(form, BlockLayout.of(form))
            if isinstance(size, Dim))


BYTES_OF_A_PARTIAL = 16


class _Ones(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 1


def nest_block(form: LoopForm, params: tuple[Param, ...]) -> NestBlock:
    """The form's argument block, and which of its words are left to the caller."""
    block = _block_without_params(form)
    words = _with_params(block.words.copy(), form, params) if params else block.words.copy()
    return replace(block, words=words)


def open_block(form: LoopForm, params: tuple[Param, ...]) -> OpenBlock:
    """The argument block of a form that has symbols of a trace for sizes."""
    layout = BlockLayout.of(form)
    words, sized = np.zeros(layout.size, np.int64), list[tuple[int, Size]]()
    for slot, size in _sizes(form, layout):
        if type(size) is int:
            words[slot] = size
        else:
            sized.append((slot, size))
    numbered = [(layout.param(k), param) for k, param in enumerate(params)]
    for slot, param in numbered:
        if type(param.value) is not Symbolic:
            words[slot] = raw_bits(param.dtype, param.value)
    return OpenBlock(
        form, _block_of(form, layout, words, (), 0, 0), [slot for slot, _ in sized],
        tuple(size for _, size in sized),
        tuple((slot, p) for slot, p in numbered if type(p.value) is Symbolic), raw_bits)


@asked_once
def _block_without_params(form: LoopForm) -> NestBlock:
    layout, is_static = BlockLayout.of(form), form.is_static
    return _block_of(
        form, layout, _sizes_in_block(form if is_static else form.at_sizes(_Ones()), layout),
        () if is_static else tuple(open_words(form)),
        form.tasks if is_static else tasks_of(form), form.points)


def _block_of(
    form: LoopForm, layout: BlockLayout, words: np.ndarray, open_: tuple[tuple[int, Size], ...],
    tasks: Size, points: Size,
) -> NestBlock:
    nest, is_flat = form.nest, form.mode == "flat"
    reductions = sum(len(stage.reductions) for stage in nest.stages)
    return NestBlock(
        words=words,
        pointers=tuple((number, o.buffer, o.offset) for number, o in enumerate(form.operands)),
        open=open_, tasks=tasks, points=points, ns=point_ns(form), sequential=nest.sequential,
        in_order=nest.sequential and (not nest.chunk or len(form.extents) > 1),
        together=max(1, nest.chunk // MAP_BLOCK), status=layout.status if layout.checks else NONE,
        partials=layout.partial_results if is_flat else NONE,
        task_count=layout.task_count if is_flat else NONE,
        partial_bytes=BYTES_OF_A_PARTIAL * reductions,
    )
