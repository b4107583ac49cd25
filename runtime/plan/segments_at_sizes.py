"""Consecutive kernels of a plan that is one of several sizes: what sizes do not decide is made
once, for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.machine_code.native_backend import NativeBackend as Backend
from fusec.codegen.machine_code.native_nest import NONE, NativeNest, NestBlock
from fusec.codegen.structured.kernel_statements import RunKernel, nests_to_run
from fusec.codegen.structured.memory import View
from fusec.ir.lazy_values import lazy

from ..launching import launch, launch_spec
from ..launching.grain import grain_of
from ..launching.launches import ArgumentBlocks, make_blocks
from ..native import records
from .plan_templates import Inside, Opened, PlanTemplate
from .segments import RELEASE_GIL_NS, Segment

_FLAGS = records.PLAN.index("flags")


class OpenNest:
    """A nest with symbols: its block, its code, and where the pointers of the block go."""

    def __init__(self, block: Any, code: NativeNest, places: Sequence[View]) -> None:
        self.block, self.code = block, code
        pointers = [(slot, places[buffer]) for slot, buffer, _ in block.block.pointers]
        self.arrays = [(number, slot, place.key) for number, (slot, place)
                       in enumerate(pointers) if not place.is_cell]
        self.cells = [(number, slot, place.memory.position) for number, (slot, place)
                      in enumerate(pointers) if place.is_cell]

    @property
    def has_partials(self) -> bool:
        return bool(self.block.block.partials != NONE)

    def steps(self, start: int, share: Sequence[Any]) -> list[launch_spec.NativeStep]:
        """The launches of a block at ``start`` of a template, of a share as `share_of` gives it."""
        steps = [launch_spec.NativeStep(self.code.entry, Inside(8 * start), *share)]
        if self.code.finish:
            steps.append(launch_spec.NativeStep(self.code.finish, Inside(8 * start), 1, 1, False))
        return steps

    def partial_temp(self, start: int, nbytes: int) -> launch_spec.Temp:
        at = Inside(8 * (start + self.block.block.partials))
        return launch_spec.Temp(nbytes, (launch_spec.WordStore(at),))


def nests_of(steps: Sequence[RunKernel], backend: Backend) -> list[OpenNest]:
    return [OpenNest(backend.open_block(form, step.params), code, step.places)
            for step in steps for form, code in zip(step.forms, step.code, strict=True)]


class SegmentPattern:
    """The kernels with symbols, and the template of their plans."""

    def __init__(self, steps: Sequence[RunKernel], backend: Backend) -> None:
        self.nests = nests_of(steps, backend)
        self.keys = list(dict.fromkeys(key for nest in self.nests for *_, key in nest.arrays))
        self._template: PlanTemplate | None = None

    @classmethod
    def of(cls, steps: Sequence[RunKernel], backend: Backend) -> SegmentPattern:
        """That of the patterns of these steps, which the first of them keeps."""
        patterns = [step.pattern for step in steps if step.pattern is not None]
        known: dict[int, SegmentPattern] = vars(patterns[0]).setdefault("segments", {})
        if len(patterns) not in known:
            known.setdefault(len(patterns), cls(patterns, backend))
        return known[len(patterns)]

    def call(
        self, arrays: Sequence[np.ndarray], blocks: Sequence[NestBlock], cells: np.ndarray,
    ) -> Callable[..., Any] | None:
        """The native call for arrays that lie like these; None where the template is not for it."""
        template = self._template
        if template is None:
            template = self._template = self._made(
                [a.dtype for a in arrays], [a.ndim for a in arrays])
        args: Any = template.spec.args
        if not all(a.dtype is arg.dtype and a.ndim == len(arg.shape)
                   for a, arg in zip(arrays, args, strict=True)):
            return None
        shares = [share_of(block) for block in blocks]
        table, address = template.table([*_layouts(arrays), *self._decided(blocks, shares)])
        self._write_blocks(table, template.starts, blocks, cells)
        work = sum(block.ns * block.points for block in blocks)
        table[template.plan + _FLAGS] = (
            (records.FLAG_RELEASE_GIL if work > RELEASE_GIL_NS else 0)
            | (records.FLAG_PARALLEL if any(parallel for *_, parallel in shares) else 0))
        slots = [start + block.status for start, block in zip(template.starts, blocks, strict=True)
                 if block.status != NONE]
        return launch.call_of(table, address, template.plan, slots, (self, template, cells))

    def _write_blocks(
        self, table: np.ndarray, starts: Sequence[int], blocks: Sequence[NestBlock],
        cells: np.ndarray,
    ) -> None:
        first = int(cells.ctypes.data) if any(nest.cells for nest in self.nests) else 0
        for nest, block, start in zip(self.nests, blocks, starts, strict=True):
            table[start: start + len(block.words)] = block.words
            for number, slot, cell in nest.cells:
                table[start + slot] = first + 8 * cell + block.pointers[number][2]

    def _decided(
        self, blocks: Sequence[NestBlock], shares: Sequence[tuple[int, int, bool]]
    ) -> Iterator[int]:
        """The words that sizes decide, in the order of `_spec`."""
        for nest, block in zip(self.nests, blocks, strict=True):
            for number, *_ in nest.arrays:
                yield block.pointers[number][2]
        for share, block in zip(shares, blocks, strict=True):
            yield from share
            if block.partials != NONE:
                yield block.partial_bytes * block.tasks

    def _made(self, dtypes: Sequence[np.dtype], ranks: Sequence[int]) -> PlanTemplate:
        return PlanTemplate([nest.block.block.words for nest in self.nests],
                            lambda starts, opened: self._spec(starts, opened, dtypes, ranks))

    def _spec(
        self, starts: Sequence[int], opened: Opened, dtypes: Sequence[np.dtype],
        ranks: Sequence[int],
    ) -> launch_spec.PlanSpec:
        layouts = [(opened.some(rank), opened.some(rank)) for rank in ranks]
        stores: dict[Any, list[launch_spec.WordStore]] = {key: [] for key in self.keys}
        for nest, start in zip(self.nests, starts, strict=True):
            for _, slot, key in nest.arrays:
                stores[key].append(launch_spec.WordStore(Inside(8 * (start + slot)), opened.one()))
        steps: list[launch_spec.NativeStep] = []
        temps: list[launch_spec.Temp] = []
        for nest, start in zip(self.nests, starts, strict=True):
            steps += nest.steps(start, opened.some(3))
            if nest.has_partials:
                temps.append(nest.partial_temp(start, opened.one()))
        return launch_spec.PlanSpec(
            tuple(launch_spec.ArrayArg(dtype, shape, strides, tuple(stores[key]))
                  for dtype, (shape, strides), key in zip(dtypes, layouts, self.keys, strict=True)),
            (launch_spec.ObjectOut(None),), tuple(steps), tuple(temps), name="segment")


def _layouts(arrays: Sequence[np.ndarray]) -> Iterator[int]:
    for array in arrays:
        yield from array.shape
        for size, stride in zip(array.shape, array.strides, strict=True):
            yield records.ANY_STRIDE if size == 1 else stride


def share_of(block: NestBlock) -> tuple[int, int, bool]:
    """The tasks of a nest, how many a thread takes at a time, and whether there are several."""
    grain = grain_of(block, block.tasks, block.ns * block.points, config.parallel_threshold)
    return block.tasks, grain, grain < block.tasks


class OpenSegment(Segment):
    """A segment at the sizes of a call."""

    def __init__(self, steps: Sequence[RunKernel], cells: np.ndarray, backend: Backend) -> None:
        self._steps, self._cells, self._backend = steps, cells, backend
        self._pattern = SegmentPattern.of(steps, backend)
        self.keys = self._pattern.keys
        self.call = self._first_call
        self.made_ms = 0.0

    @lazy
    def blocks(self) -> ArgumentBlocks:
        """For launches from Python, and plans that the template is not for."""
        blocks, self.work = make_blocks(
            nests_to_run(self._steps, self._backend), self._cells)
        return blocks

    def _native_call(self, arrays: Sequence[np.ndarray]) -> Callable[..., Any] | None:
        step = self._steps[0]
        blocks = [step.filled(nest.block) for nest in self._pattern.nests]
        call = None
        if all(block.tasks for block in blocks):
            call = self._pattern.call(arrays, blocks, self._cells)
        return call or super()._native_call(arrays)


__all__ = ["OpenNest", "OpenSegment", "nests_of", "share_of"]
