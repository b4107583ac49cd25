"""Nests as compiled kernels: the part of a form that is code, and one call of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.bindings import Bindings, resolve
from fusec.ir.sizes.dims import symbols_of

from ..kernels.loop_ir import Kernel, Param
from ..kernels.specialise import LoopForm, structure_key
from .driver.device_memory import DeviceMemory
from .driver.driver import Driver
from .kernels.elementwise_kernels import are_lanes_apart, is_aligned
from .kernels.kernel_frame import constants_of_code
from .kernels.kernel_sources import WrittenKernel, module_of
from .kernels.kernel_texts import KernelTexts
from .kernels.launch_plan import Layout, Slot, reciprocal
from .kernels.ordered_stores import way_of
from .kernels.partitioned_stores import is_partitioned
from .kernels.reductions.column_parts import parts_of
from .kernels.reductions.full_reductions import chunks_of, is_for_one_block
from .kernels.reductions.long_scans import is_long_scan
from .kernels.reductions.rows import are_aligned, has_parts_of_warps, is_on_chip
from .kernels.shared_sums import places_of
from .kernels.tiles import SIDE, tiles_of
from .module import CudaKernel

_I32_LIMIT = (1 << 31) - (1 << 24)  # room for the stride of a whole grid
STATUS_BYTES = 16


@dataclass(frozen=True)
class CudaForm:
    """A nest with its loop form, and the kernel that it is of."""

    loops: LoopForm
    kernel: Kernel

    @property
    def mode(self) -> str:
        return self.loops.mode

    @property
    def is_static(self) -> bool:
        return self.loops.is_static

    @property
    def points(self) -> int:
        return self.loops.points

    @property
    def index(self) -> str:
        """The type of counters and offsets: 32 bits where all of them are known to fit."""
        return "i32" if self.is_static and _fits(self.loops) else "i64"


def stores(form: CudaForm) -> bool:
    """Whether it has points, or is a reduction of none: the sum of no elements is 0."""
    loops = form.loops
    return form.points > 0 or (
        form.mode != "map" and math.prod(loops.extents[:loops.outer]) > 0)


def code_key(form: CudaForm) -> tuple:
    """All that the code depends on: of sizes only whether values fit on the chip, the tiling, and
    whether neighbours lie at aligned addresses; of constants those of a form with many."""
    loops = form.loops
    return (form.index, is_on_chip(loops), tiles_of(loops), chunks_of(loops) > 1,
            parts_of(loops) > 1, is_for_one_block(loops), _is_aligned(loops),
            constants_of_code(loops), is_partitioned(loops), has_parts_of_warps(loops),
            is_long_scan(loops), are_lanes_apart(loops),
            loops.nest.sequential and (way_of(loops), places_of(loops)), structure_key(loops))


def _is_aligned(form: LoopForm) -> bool:
    return is_aligned(form) if form.mode == "map" else form.mode == "row" and are_aligned(form)


def _fits(form: LoopForm) -> bool:
    spans = [sum(abs(s) * max(0, n - 1) for s, n in zip(o.strides, form.extents, strict=True))
             for o in form.operands]
    return max([math.prod(form.extents), *spans]) < _I32_LIMIT


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel that a driver has loaded, with the facts that its launches need."""

    loaded: Any
    kernel: CudaKernel
    written: WrittenKernel


class NestKernels(list[LoadedKernel]):
    """The kernels of a nest, in the order in which they are launched; while somebody holds them
    they stay loaded."""


def raw_bits(param: Param, sizes: Bindings) -> int:
    """A constant's bytes, zero-extended."""
    value = resolve(param.value, sizes)
    data = np.asarray(value, param.dtype).tobytes()
    return int.from_bytes(data.ljust(8, b"\0"), "little", signed=True)


class NestCall:
    """``call(buffers, sizes)``: the kernels of one nest on arrays, in order."""

    def __init__(self, form: CudaForm, kernels: NestKernels, driver: Driver) -> None:
        self.form, self.kernels, self.driver = form, kernels, driver
        self.has_checks = form.loops.nest.has_checks
        self.plans = self._planned(form.loops, {}) if form.is_static else None

    @lazy
    def asm(self) -> KernelTexts:
        """The kernels of this nest as a module of their own."""
        return KernelTexts(module_of([one.written for one in self.kernels]))

    def _planned(self, form: LoopForm, sizes: Bindings) -> list[tuple[Layout, list[int | Slot]]]:
        """Each kernel's layout, and its arguments with slots where only the call knows."""
        params = [raw_bits(p, sizes) for p in self.form.kernel.params]
        plans = []
        for one in self.kernels:
            layout = one.written.geometry(form)
            plans.append((layout, [
                s if s[0] in _AT_CALL else fixed_argument(s, form, params, layout)
                for s in one.written.slots]))
        return plans

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that its sizes contain."""
        loops = self.form.loops
        return symbols_of((loops.extents, tuple(
            (o.offset, o.strides, o.gathered) for o in loops.operands)))

    def at_sizes(
        self, sizes: Bindings
    ) -> tuple[LoopForm, Sequence[tuple[Layout, Sequence[int | Slot]]]]:
        """The form at these sizes, and for each kernel its layout and arguments."""
        if self.plans is not None:
            return self.form.loops, self.plans
        form = self.form.loops.at_sizes(sizes)
        return form, self._planned(form, sizes)

    def __call__(self, buffers: Sequence[Any], sizes: Bindings) -> bool:
        form, plans = self.at_sizes(sizes)
        memory = DeviceMemory(self.driver)
        try:
            addresses = memory.addresses_of(buffers)
            status = memory.zeros(STATUS_BYTES) if self.has_checks else 0
            # A wrong index becomes 0, and where there is no element 0 something else is read.
            where: dict[Slot, int] = {
                ("operand", n): addresses[o.buffer] + o.offset if buffers[o.buffer].size else status
                for n, o in enumerate(form.operands)}
            where["status",] = status
            self._launch(plans, where, memory)
            memory.copy_back({o.buffer for o in form.operands if o.is_store})
            return not self.has_checks or not memory.word(status)
        finally:
            memory.release()

    def _launch(
        self, plans: Sequence[tuple[Layout, Sequence[int | Slot]]], where: dict[Slot, int],
        memory: DeviceMemory,
    ) -> None:
        for one, (layout, args) in zip(self.kernels, plans, strict=True):
            if layout.partials and ("partials",) not in where:
                where["partials",] = memory.fresh(layout.partials)
            for number, dtype in enumerate(self.form.loops.nest.scratch if layout.scratch else ()):
                where["scratch", number] = memory.fresh(layout.scratch * dtype.itemsize)
            values = [where[a] if isinstance(a, tuple) else a for a in args]
            self.driver.launch(one.loaded, one.kernel, (layout.blocks, 1, 1),
                               (*layout.threads, 1), layout.shared, values)


_AT_CALL = frozenset({"operand", "status", "partials", "scratch"})


def fixed_argument(slot: Slot, form: LoopForm, params: Sequence[int], layout: Layout) -> int:
    """The argument for a slot that is no address."""
    kind, numbers = slot[0], [int(n) for n in slot[1:]]
    of_kind: dict[Any, Callable[[], int]] = {
        "extent": lambda: form.extents[numbers[0]],
        "stride": lambda: form.operands[numbers[0]].strides[numbers[1]],
        "gathered": lambda: form.operands[numbers[0]].gathered[numbers[1]],
        "param": lambda: params[numbers[0]],
        "work": lambda: layout.work,
        "row_packs": lambda: layout.row_packs,
        "row_points": lambda: layout.row_points,
        "row_bytes": lambda: layout.row_bytes,
        "chunks": lambda: layout.chunks,
        "divide_magic": lambda: _signed(reciprocal(max(1, form.extents[numbers[0]]))[0]),
        "divide_shift": lambda: reciprocal(max(1, form.extents[numbers[0]]))[1],
        "divide_tiles_magic": lambda: _signed(reciprocal(_tiles(form, numbers[0]))[0]),
        "divide_tiles_shift": lambda: reciprocal(_tiles(form, numbers[0]))[1],
        "divide_packs_magic": lambda: _signed(reciprocal(_packs(form, numbers[0]))[0]),
        "divide_packs_shift": lambda: reciprocal(_packs(form, numbers[0]))[1],
    }
    return of_kind[kind]()


def _tiles(form: LoopForm, loop: int) -> int:
    return max(1, -(-form.extents[loop] // SIDE))


def _packs(form: LoopForm, lanes: int) -> int:
    """Packs of a row."""
    return max(1, -(-form.extents[form.axis] // lanes))


def _signed(word: int) -> int:
    """The int32 with the bits of a word."""
    return word - (1 << 32) if word >= 1 << 31 else word
