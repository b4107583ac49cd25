"""Consecutive kernels of a plan, run as one: with static argument blocks or sized at each call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping

import numpy as np

from fusec.codegen.cpu.compile import NEST_SIGNATURE
from fusec.ir.dims import evaluator, resolve, typical

from . import launch, launch_spec, memory, threads
from .addresses import address_of
from .native import NativeUnavailableError
from .plan import Blocks, KernelStep, Place, make_blocks
from .sized_nests import Arrays, SizedNest
from .whole_call import (
    RELEASE_GIL_NS,
    native_steps,
    partial_temps,
    status_slots,
    stores_of,
)

SMALL_BYTES = 1 << 16  # below this NumPy's own allocation is as good and quicker


def allocator(place: Place) -> Callable[[], np.ndarray]:
    """Makes fresh memory in the place's layout; its sizes are known."""
    make = sized_allocator(place)
    return lambda: make({})


def sized_allocator(place: Place) -> Callable[[Mapping[str, int]], np.ndarray]:
    """Makes fresh memory in the place's layout for these values of its sizes' symbols."""
    order = sorted(range(len(place.shape)), key=lambda d: -typical(place.strides[d]))
    shape, dtype = place.shape, place.dtype
    in_order = order == list(range(len(order)))
    if in_order and place.is_static and math.prod(shape) * dtype.itemsize < SMALL_BYTES:
        return lambda sizes: np.empty(shape, dtype)
    axes, shape_at = "C" if in_order else order, evaluator(shape)
    return lambda sizes: memory.empty(shape_at(sizes), dtype, axes)


class Segment:
    """Consecutive kernels: pointers are patched, then launched."""

    def __init__(self, steps: list[KernelStep], cells: np.ndarray) -> None:
        self.blocks, self.work = make_blocks(steps, cells)
        keys: dict[tuple[str, int], None] = {}
        for pointer in self.blocks.pointers:
            keys.setdefault((pointer.place.kind, pointer.place.number))
        self.keys = list(keys)
        self.plan: launch.Plan | None = None

    def run(self, memory_of: dict[tuple[str, int], np.ndarray]) -> bool:
        """Whether it ran to the end: a failed check stops it."""
        arrays = [memory_of[key] for key in self.keys]
        if self.plan is None and launch.launcher_status().available:
            self.plan = self._make_plan(arrays)
        outcome = launch.MISS if self.plan is None else self.plan.call(*arrays)
        if outcome is None or outcome is launch.FAILED:
            return outcome is None
        # An unaligned operand, say, does not fit the plan.
        return run_by_ctypes(self.blocks, memory_of)

    def _make_plan(self, arrays: list[np.ndarray]) -> launch.Plan | None:
        args = tuple(
            launch_spec.ArrayArg(a.dtype, a.shape, tuple(None if d == 1 else s for d, s in
                                                    zip(a.shape, a.strides, strict=True)),
                            stores_of(self.blocks.pointers, *key))
            for key, a in zip(self.keys, arrays, strict=True)
        )
        try:
            return launch.Plan(launch_spec.PlanSpec(
                args=args, outs=(launch_spec.ObjectOut(None),), steps=native_steps(self.blocks),
                temps=tuple(partial_temps(self.blocks)), status_slots=status_slots(self.blocks),
                release_gil=self.work > RELEASE_GIL_NS,
                keep=(self.blocks,), name="segment",
            ))
        except NativeUnavailableError:
            return None


def run_by_ctypes(blocks: Blocks, memory_of: Arrays) -> bool:
    """Point the blocks at these arrays and launch; whether no check failed."""
    status = np.zeros(1, np.int64)
    for block, slot in blocks.status:
        block[slot] = int(status.ctypes.data)
    for pointer in blocks.pointers:
        base = memory_of[pointer.place.kind, pointer.place.number]
        pointer.block[pointer.slot] = address_of(base) + pointer.offset
    scratch = [ctypes.create_string_buffer(n) for _, _, n in blocks.partials]
    for buffer, (block, slot, _) in zip(scratch, blocks.partials, strict=True):
        block[slot] = ctypes.addressof(buffer)
    for item in blocks.launches:
        address = int(item.block.ctypes.data)
        if item.parallel:
            threads.parallel_for(item.function, address, item.tasks, item.grain)
        else:
            NEST_SIGNATURE(item.function)(address, 0, item.tasks)
        if status[0]:
            return False
    return True


class SizedSegment:
    """Kernels with sizes that the call itself defines; their machine code is the same for all."""

    def __init__(self, steps: list[KernelStep], cells: np.ndarray) -> None:
        self.status = np.zeros(1, np.int64)
        self.nests = [
            SizedNest(step, form, code, cells, self.status)
            for step in steps for form, code in zip(step.forms, step.code, strict=True)
        ]
        self.fresh = {(p.kind, p.number): sized_allocator(p) for step in steps
                      for p in step.places
                      if p.kind in ("out", "temp") and not p.is_static and not p.views}
        self.not_empty = tuple(dict.fromkeys(s for step in steps for s in step.not_empty))

    def run(
        self, memory_of: Arrays, sizes: Mapping[str, int], error: Callable[[], Exception | None]
    ) -> bool:
        """Whether it ran to the end: a failed check stops it.

        Raises ``error()``, if there is one, where an extremum is of nothing.
        """
        if any(resolve(size, sizes) == 0 for size in self.not_empty):
            raised = error()
            if raised is not None:
                raise raised
        for key, new in self.fresh.items():
            if key not in memory_of:
                memory_of[key] = new(sizes)
        self.status[0] = 0
        for nest in self.nests:
            nest.run(memory_of, sizes)
            if self.status[0]:
                return False
        return True
