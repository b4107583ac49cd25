"""Nests whose sizes the call itself defines: one argument block, rewritten where sizes stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.cpu.abi import BlockLayout, fill_block, open_words
from fusec.codegen.cpu.compile import NEST_SIGNATURE, NativeNest
from fusec.codegen.specialise import LoopForm, tasks_of
from fusec.ir.dims import Bindings, size_source

from . import threads
from .addresses import address_of
from .plan import KernelStep, Place
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
        self.layout = layout
        self.reductions = sum(len(s.reductions) for s in form.nest.stages)
        smallest = form.at_sizes(ones)
        self.ns = work_ns(smallest) / max(smallest.points, 1)  # a point
        self.partials = np.empty(0, np.uint8)
        if layout.checks:
            self.words[layout.status] = int(status.ctypes.data)
        self.entry = code.entry, NEST_SIGNATURE(code.entry)
        self.finish = NEST_SIGNATURE(code.finish) if code.finish else None
        self.run = self._compiled([step.places[o.buffer] for o in form.operands], cells)

    def _compiled(
        self, places: list[Place], cells: np.ndarray
    ) -> Callable[[Arrays, Bindings], None]:
        """Does the nest's work on the arrays of places, for the sizes: ``run(memory, sizes)``."""
        form, lines = self.form, []
        lines += [f"words[{slot}] = {size_source(size, 'b')}" for slot, size in open_words(form)]
        for number, (operand, place) in enumerate(zip(form.operands, places, strict=True)):
            offset: Any = operand.offset
            if place.kind == "cell":  # the offset says which part of a complex number
                self.words[number] = int(cells.ctypes.data) + 8 * place.number + offset
            else:
                lines.append(f"words[{number}] = address_of(m[{(place.kind, place.number)!r}]) + "
                             f"{size_source(offset, 'b')}")
        lines.append(f"tasks = {size_source(tasks_of(form), 'b')}")
        if form.mode == "flat":
            lines.append("make_partials(tasks)")
        lines.append(f"launch(tasks, {self.ns!r} * ({size_source(math.prod(form.extents), 'b')}))")
        if self.finish is not None:
            lines.append(f"finish({self.address}, 0, 1)")
        names: dict[str, Any] = {
            "words": self.words, "address_of": address_of, "launch": self._launch,
            "make_partials": self._make_partials, "finish": self.finish}
        exec("def run(m, b):\n    " + "\n    ".join(lines), names)
        run: Callable[[Arrays, Bindings], None] = names["run"]
        return run

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

