"""Nests whose sizes the call itself defines: one argument block, rewritten where sizes stand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.cpu.abi import BlockLayout, fill_block, open_words
from fusec.codegen.cpu.compile import NEST_SIGNATURE, NativeNest
from fusec.codegen.specialise import LoopForm, count_tasks
from fusec.ir.dims import Bindings, evaluator

from . import threads
from .addresses import address_of
from .plan import KernelStep
from .work import GRAIN_NS, work_ns

Arrays = dict[tuple[str, int], np.ndarray]


class SizedNest:
    """One nest of one plan instance; ``run`` fills its block for the sizes and launches it."""

    def __init__(
        self, step: KernelStep, form: LoopForm, code: NativeNest, cells: np.ndarray,
        status: np.ndarray,
    ) -> None:
        self.form, layout = form, BlockLayout.of(form)
        ones = _Ones()
        self.block = fill_block(form.at_sizes(ones), step.kernel.params)
        block: Any = self.block
        self.words = memoryview(block)
        self.address = int(self.block.ctypes.data)
        self.layout, self.reductions = layout, sum(len(s.reductions) for s in form.nest.stages)
        words = dict(open_words(form))
        places = [step.places[o.buffer] for o in form.operands]
        for number, place in enumerate(places):
            if place.kind == "cell":
                offset: Any = form.operands[number].offset  # which part of a complex number
                self.words[number] = int(cells.ctypes.data) + 8 * place.number + offset
        self.slots = tuple(words)
        first = len(self.slots) + len(form.extents)
        self.pointers = [(number, (p.kind, p.number), first + number)
                         for number, p in enumerate(places) if p.kind != "cell"]
        self.values = evaluator(
            [*words.values(), *form.extents, *(o.offset for o in form.operands)])
        smallest = form.at_sizes(ones)
        self.ns = work_ns(smallest) / max(smallest.points, 1)  # a point
        self.partials = np.empty(0, np.uint8)
        if layout.checks:
            self.words[layout.status] = int(status.ctypes.data)
        self.entry = code.entry, NEST_SIGNATURE(code.entry)
        self.finish = NEST_SIGNATURE(code.finish) if code.finish else None

    def run(self, memory_of: Arrays, sizes: Bindings) -> None:
        """Do the nest's work on these arrays."""
        form, words, values = self.form, self.words, self.values(sizes)
        for slot, value in zip(self.slots, values, strict=False):
            words[slot] = value
        for slot, key, at in self.pointers:
            words[slot] = address_of(memory_of[key]) + values[at]
        first = len(self.slots)
        extents = values[first: first + len(form.extents)]
        tasks = count_tasks(form.mode, extents, form.outer, form.axis)
        if form.mode == "flat":
            self._make_partials(tasks)
        self._launch(tasks, self.ns * math.prod(extents))
        if self.finish is not None:
            self.finish(self.address, 0, 1)

    def _make_partials(self, tasks: int) -> None:
        nbytes = 16 * self.reductions * tasks
        if self.partials.size < nbytes:
            self.partials = np.empty(nbytes, np.uint8)
            self.words[self.layout.partial_results] = int(self.partials.ctypes.data)
        self.words[self.layout.task_count] = tasks

    def _launch(self, tasks: int, work: float) -> None:
        address, function = self.entry
        if work >= config.parallel_threshold and tasks > 1 and not self.form.nest.sequential:
            grain = max(1, math.ceil(tasks * GRAIN_NS / work))
            threads.parallel_for(address, self.address, tasks, grain)
        elif tasks:
            function(self.address, 0, tasks)


class _Ones(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 1

