"""Elementwise kernels of which some operands lie along one loop and some along another (x + x.T).

A block does tiles of 32 by 32 points.  Operands that lie along the other loop go through shared
memory: they are read, and written, by threads that are neighbours along that loop, and used by
threads that are neighbours along the vector axis.  So all of global memory is touched in runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from fusec.core.records import dataclass

from ...kernels.loop_ir import Expr, walk
from ...kernels.specialise import LoopForm
from ..scalars.emitter import BOOL, CudaValue, memory_type
from .launch_plan import Geometry, Layout, blocks_for
from .nest_kernel import KernelWriter, ThreadPoint

SIDE = 32
ROWS = 8  # of threads; a thread does SIDE / ROWS points of a tile
PITCH = SIDE + 1  # elements between rows of a tile: columns lie in different banks, too
ON_CHIP_BYTES = 40 << 10
LEAST = 16  # points along both loops for which tiles are worth it


@dataclass(frozen=True)
class Tiles:
    """The other loop, and the operands that lie along it."""

    loop: int
    operands: tuple[int, ...]


def tiles_of(form: LoopForm) -> Tiles | None:
    """How a form is tiled; None where all operands lie along the vector axis, or none does."""
    if form.mode != "map" or form.nest.sequential or not form.is_static:
        return None
    if not any(form.stride_class(o) == "unit" for o in form.operands):
        return None
    for loop in range(len(form.extents)):
        across = tuple(n for n in range(len(form.operands)) if _lies_along(form, n, loop))
        size = sum(form.operands[n].dtype.itemsize for n in across) * SIDE * PITCH
        if across and loop != form.axis and size <= ON_CHIP_BYTES and (
                min(form.extents[loop], form.extents[form.axis]) >= LEAST):
            return Tiles(loop, across)
    return None


def _lies_along(form: LoopForm, number: int, loop: int) -> bool:
    operand = form.operands[number]
    return not operand.gathered and form.stride_class(operand) == "strided" and (
        operand.strides[loop] == operand.dtype.itemsize)


class TileKernel(KernelWriter):
    """See the module docstring."""

    has_barriers = True
    max_threads = SIDE * ROWS
    elements = SIDE // ROWS

    def __init__(self, form: LoopForm, name: str, index: str) -> None:
        super().__init__(form, name, index)
        tiles = tiles_of(form)
        assert tiles is not None
        self.tiles, self.lanes = tiles, 1
        self.loaded = {e.attr for e in walk(form.nest.roots) if e.op == "load"}
        self.row, self.held = "", list[int]()

    def body(self) -> None:
        form, em, index, tiles = self.form, self.em, self.index, self.tiles
        for number in tiles.operands:
            dtype = form.operands[number].dtype
            self.head.append(f"__shared__ {memory_type(dtype)} tile{number}[{SIDE * PITCH}];")
            self.shared_bytes += SIDE * PITCH * dtype.itemsize
        work = self.param(("work",), self.index_kind, "work")
        head = f"for ({index} id = blockIdx.x; id < {work}; id += gridDim.x)"
        with em.block(head):
            corner, counters = self._corner()
            moved = self.moved([self.pointer(n) for n in range(len(form.operands))], counters)
            self._fetch(corner, moved)
            self._hold(corner, moved)
            self._put(corner)
            em.line("__syncthreads();")
            self._compute(corner, counters, moved)
            em.line("__syncthreads();")
            if self.stored.intersection(tiles.operands):
                self._write(corner, moved)
                em.line("__syncthreads();")

    def _corner(self) -> tuple[dict[int, str], dict[int, str]]:
        """The first counters of a tile along its two loops, and the counters of the others."""
        em, form, index = self.em, self.form, self.index
        rest, corner = "id", {}
        for loop in (form.axis, self.tiles.loop):
            count = em.named(index, f"({self.extent(loop)} + {SIDE - 1}) / {SIDE}", "tiles")
            after = self.quotient(rest, count, ("divide_tiles", loop))
            corner[loop] = em.named(index, f"({rest} - {after} * {count}) * {SIDE}", "corner")
            rest = after
        others = [loop for loop in range(len(form.extents)) if loop not in corner]
        return corner, self.decoded(rest, others) if others else {}

    @contextmanager
    def _rows(self, corner: dict[int, str], fast: int, slow: int) -> Iterator[dict[int, str]]:
        """Points of the tile: threads that are neighbours in x are so along the fast loop."""
        em, index = self.em, self.index
        em.line("#pragma unroll")
        with em.block(f"for (int j = 0; j < {SIDE // ROWS}; ++j)"):
            em.line(f"const int r = int(threadIdx.y) + j * {ROWS};")
            here = {fast: em.named(index, f"{corner[fast]} + {index}(threadIdx.x)", "i"),
                    slow: em.named(index, f"{corner[slow]} + r", "i")}
            yield here

    def _inside(self, here: dict[int, str]) -> str:
        return " && ".join(f"{i} < {self.extent(loop)}" for loop, i in here.items())

    # -- global memory and tiles: all of a thread's loads are asked for before one is waited for

    def _fetch(self, corner: dict[int, str], pointers: list[str]) -> None:
        """What is loaded along the other loop, to registers."""
        numbers = [n for n in self.tiles.operands if n in self.loaded]
        for n in numbers:
            self.em.line(f"{self._pack(n)} in{n};")
        if numbers:
            with self._rows(corner, self.tiles.loop, self.form.axis) as here:
                for n in numbers:
                    self.em.line(f"if ({self._inside(here)}) in{n}.v[j] = load<{self._kind(n)}>("
                                 f"{self._across(n, here, pointers)});")

    def _put(self, corner: dict[int, str]) -> None:
        """From registers to tiles."""
        numbers = [n for n in self.tiles.operands if n in self.loaded]
        if numbers:
            with self._rows(corner, self.tiles.loop, self.form.axis) as here:
                for n in numbers:
                    self.em.line(f"if ({self._inside(here)}) shared_store("
                                 f"&tile{n}[r * {PITCH} + threadIdx.x], in{n}.v[j]);")

    def _write(self, corner: dict[int, str], pointers: list[str]) -> None:
        """What is stored along the other loop, from tiles."""
        numbers = [n for n in self.tiles.operands if n in self.stored]
        if numbers:
            with self._rows(corner, self.tiles.loop, self.form.axis) as here:
                for n in numbers:
                    self.em.line(f"if ({self._inside(here)}) store<{self._kind(n)}>("
                                 f"{self._across(n, here, pointers)}, shared_load("
                                 f"&tile{n}[r * {PITCH} + threadIdx.x]));")

    def _kind(self, number: int) -> str:
        return memory_type(self.form.operands[number].dtype)

    def _pack(self, number: int) -> str:
        """A thread's elements of an operand."""
        return f"Pack<{self._kind(number)}, {SIDE // ROWS}>"

    def _across(self, number: int, here: dict[int, str], pointers: list[str]) -> str:
        axis, other = self.form.axis, self.tiles.loop
        return (f"{pointers[number]} + ({here[axis]} * {self.stride(number, axis)} + "
                f"{here[other]} * {self.form.operands[number].dtype.itemsize})")

    def _hold(self, corner: dict[int, str], pointers: list[str]) -> None:
        """What is loaded along the axis, to registers."""
        form, axis, other = self.form, self.form.axis, self.tiles.loop
        self.held = [n for n in sorted(self.loaded) if n not in self.tiles.operands
                     and not form.operands[n].gathered and n not in self.stored
                     and form.stride_class(form.operands[n]) != "zero"]
        for n in self.held:
            self.em.line(f"{self._pack(n)} held{n};")
        if self.held:
            with self._rows(corner, axis, other) as here:
                last = self._last(here)
                along = self.moved(pointers, {other: last[other]})
                for n in self.held:
                    self.em.line(f"held{n}.v[j] = load<{self._kind(n)}>({along[n]} + {last[axis]} "
                                 f"* {self.stride(n, axis)});")

    def _last(self, here: dict[int, str]) -> dict[int, str]:
        """A point, or the last one of the domain along each loop."""
        return {loop: self.em.named(
            self.index, f"{i} < {self.extent(loop)} ? {i} : {self.extent(loop)} - 1", "i")
            for loop, i in here.items()}

    def _compute(
        self, corner: dict[int, str], counters: dict[int, str], pointers: list[str]
    ) -> None:
        """The stage, by threads along the axis; outside of the domain they do its last points."""
        form, em, axis, other = self.form, self.em, self.form.axis, self.tiles.loop
        (stage,) = form.nest.stages
        with self._rows(corner, axis, other) as here:
            valid, last = em.named("bool", self._inside(here), "valid"), self._last(here)
            self.row = (f"int({last[axis]} - {corner[axis]}) * {PITCH} + "
                        f"int({last[other]} - {corner[other]})")
            along = self.moved(pointers, {other: last[other]})
            self.run_stage(stage, ThreadPoint({**counters, **last}, along, valid=valid))

    def load_text(self, e: Expr, place: ThreadPoint) -> CudaValue | None:
        if e.attr in self.held:
            text = f"held{e.attr}.v[j]"
        elif e.attr in self.tiles.operands:
            text = f"shared_load(&tile{e.attr}[{self.row}])"
        else:
            return None
        return self.em.value(e.dtype, f"{text} != 0" if e.dtype == BOOL else text)

    def store_pack(self, number: int, pack: str, place: ThreadPoint, only: str) -> None:
        if number not in self.tiles.operands:
            super().store_pack(number, pack, place, only)
            return
        self.em.line(f"if ({place.valid}) shared_store(&tile{number}[{self.row}], {pack}.v[0]);")

    def geometry(self) -> Geometry:
        axis, other = self.form.axis, self.tiles.loop

        def layout(form: LoopForm) -> Layout:
            pair = (form.extents[axis], form.extents[other])
            outer = math.prod(n for loop, n in enumerate(form.extents)
                              if loop not in (axis, other))
            work = outer * math.prod(-(-n // SIDE) for n in pair)
            return Layout(blocks_for(work, 1), (SIDE, ROWS), work)

        return layout
