"""Nests whose sizes the call itself defines: one argument block, rewritten where sizes stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen.machine_code.native_nest import NEST_SIGNATURE, NONE, NativeNest, NestBlock
from fusec.codegen.structured.memory import View
from fusec.ir.sizes.bindings import Bindings, size_source

from ..launching import threads
from ..launching.addresses import address_of
from ..launching.grain import GRAIN_NS

Arrays = dict[tuple[str, int], np.ndarray]


class SizedNest:
    """One nest of one plan instance; ``run`` fills its block for the sizes and launches it."""

    def __init__(
        self, block: NestBlock, code: NativeNest, places: Sequence[View], cells: np.ndarray,
        status: np.ndarray,
    ) -> None:
        self.block = block
        words: Any = block.words
        self.words = memoryview(words)
        self.address = int(block.words.ctypes.data)
        self.partials = np.empty(0, np.uint8)
        if block.status != NONE:
            self.words[block.status] = int(status.ctypes.data)
        self.entry = code.entry, NEST_SIGNATURE(code.entry)
        self.finish = NEST_SIGNATURE(code.finish) if code.finish else None
        self.run = self._compiled(places, cells)

    def _compiled(
        self, places: Sequence[View], cells: np.ndarray
    ) -> Callable[[Arrays, Bindings], None]:
        """Does the nest's work on the arrays of places, for the sizes: ``run(memory, sizes)``."""
        block, lines = self.block, []
        lines += [f"words[{slot}] = {size_source(size, 'b')}" for slot, size in block.open]
        for slot, buffer, offset in block.pointers:
            place = places[buffer]
            if place.is_cell:  # the offset says which part of a complex number
                self.words[slot] = int(cells.ctypes.data) + 8 * place.memory.position + offset
            else:
                lines.append(f"words[{slot}] = address_of(m[{place.key!r}]) + "
                             f"{size_source(offset, 'b')}")
        lines.append(f"tasks = {size_source(block.tasks, 'b')}")
        if block.partials != NONE:
            lines.append("make_partials(tasks)")
        lines.append(f"launch(tasks, {block.ns!r} * ({size_source(block.points, 'b')}))")
        if self.finish is not None:
            lines.append(f"finish({self.address}, 0, 1)")
        names: dict[str, Any] = {
            "words": self.words, "address_of": address_of, "launch": self._launch,
            "make_partials": self._make_partials, "finish": self.finish}
        exec("def run(m, b):\n    " + "\n    ".join(lines), names)
        run: Callable[[Arrays, Bindings], None] = names["run"]
        return run

    def _make_partials(self, tasks: int) -> None:
        nbytes = self.block.partial_bytes * tasks
        if self.partials.size < nbytes:
            self.partials = np.empty(nbytes, np.uint8)
            self.words[self.block.partials] = int(self.partials.ctypes.data)
        self.words[self.block.task_count] = tasks

    def _launch(self, tasks: int, work: float) -> None:
        address, function = self.entry
        if work >= config.parallel_threshold and tasks > 1 and not self.block.sequential:
            grain = max(1, math.ceil(tasks * GRAIN_NS / work))
            threads.parallel_for(address, self.address, tasks, grain)
        elif tasks:
            function(self.address, 0, tasks)
