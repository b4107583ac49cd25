"""Consecutive kernels of a plan, run as one: with static argument blocks or sized at each call."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen import backends
from fusec.codegen.machine_code.native_backend import NativeBackend
from fusec.codegen.machine_code.native_nest import NEST_SIGNATURE
from fusec.codegen.structured.calls.call_statements import CallStatement
from fusec.codegen.structured.kernel_statements import RunKernel, nests_to_run
from fusec.codegen.structured.memory import View
from fusec.ir.sizes.bindings import Bindings, evaluator, resolve, typical

from .. import memory
from ..launching import launch, launch_spec, threads
from ..launching.addresses import address_of
from ..launching.cells import Cells
from ..launching.launches import ArgumentBlocks, make_blocks
from ..launching.whole_call import (
    RELEASE_GIL_NS,
    native_steps,
    partial_temps,
    status_slots,
    stores_by_place,
)
from ..native import NativeUnavailableError
from .sized_nests import Arrays, SizedNest

Empty = Callable[[tuple[int, ...], np.dtype, str | Sequence[int]], Any]
SMALL_BYTES = 1 << 16  # below this NumPy's own allocation is as good and quicker


def is_small(place: View) -> bool:
    """Whether NumPy's own allocation serves: little memory, of known size, in C order."""
    order = _order(place)
    return order == sorted(order) and place.is_static and (
        math.prod(place.shape) * place.dtype.itemsize < SMALL_BYTES)


def _order(place: View) -> list[int]:
    """The axes from the largest stride to the smallest."""
    return sorted(range(len(place.shape)), key=lambda d: -typical(place.strides[d]))


def allocator(place: View) -> Callable[[], np.ndarray]:
    """Makes fresh memory in the place's layout; its sizes are known."""
    order = _order(place)
    is_ordered = order == sorted(order)
    if is_ordered and math.prod(place.shape) * place.dtype.itemsize < SMALL_BYTES:
        return partial(np.empty, place.shape, place.dtype)
    return partial(memory.empty, place.shape, place.dtype, "C" if is_ordered else order)


def sized_allocator(
    place: View, empty: Empty = memory.empty
) -> Callable[[Mapping[str, int]], np.ndarray]:
    """Makes fresh memory in the place's layout for these values of its sizes' symbols."""
    shape, dtype = place.shape, place.dtype
    if is_small(place) and empty is memory.empty:
        return lambda sizes: np.empty(shape, dtype)
    order = _order(place)
    shape_at = evaluator(shape)
    if order != sorted(order) or empty is not memory.empty:
        axes = "C" if order == sorted(order) else order
        return lambda sizes: empty(shape_at(sizes), dtype, axes)

    def make(sizes: Mapping[str, int]) -> np.ndarray:
        at = shape_at(sizes)
        return (np.empty if math.prod(at) * dtype.itemsize < SMALL_BYTES else empty)(at, dtype)

    return make


class Segment:
    """Consecutive kernels: pointers are patched, then launched."""

    def __init__(self, steps: list[RunKernel], cells: np.ndarray, backend: NativeBackend) -> None:
        self.blocks, self.work = make_blocks(nests_to_run(steps, backend), cells)
        keys: dict[tuple[str, int], None] = {}
        for pointer in self.blocks.pointers:
            keys.setdefault(pointer.place.key)
        self.keys = list(keys)
        self.call: Callable[..., Any] = self._first_call  # of the arrays of ``keys``, in order
        self.made_ms = 0.0  # the time that the first call took to make a plan

    def _first_call(self, *arrays: np.ndarray) -> Any:
        start = time.perf_counter()
        call = self._native_call(arrays) if launch.launcher_status().available else None
        self.call = call or _misses
        self.made_ms = 1e3 * (time.perf_counter() - start)
        return self.call(*arrays)

    def finish(self, outcome: Any, *arrays: np.ndarray) -> bool:
        """Whether the call ran to its end, that is without a failed check.

        Where an operand did not fit the native plan (it is unaligned, say), it is launched here.
        """
        if outcome is launch.FAILED:
            return False
        return run_by_ctypes(self.blocks, dict(zip(self.keys, arrays, strict=True)))

    def _native_call(self, arrays: Sequence[np.ndarray]) -> Callable[..., Any] | None:
        stores = stores_by_place(self.blocks.pointers)
        args = tuple(
            launch_spec.ArrayArg(a.dtype, a.shape, tuple(None if d == 1 else s for d, s in
                                                    zip(a.shape, a.strides, strict=True)),
                            stores.get(key, ()))
            for key, a in zip(self.keys, arrays, strict=True)
        )
        try:
            return launch.NativePlan(launch_spec.PlanSpec(
                args=args, outs=(launch_spec.ObjectOut(None),), steps=native_steps(self.blocks),
                temps=tuple(partial_temps(self.blocks)), status_slots=status_slots(self.blocks),
                release_gil=self.work > RELEASE_GIL_NS,
                keep=(self.blocks,), name="segment",
            )).call
        except NativeUnavailableError:
            return None


def _misses(*arrays: np.ndarray) -> Any:
    return launch.MISS


def runs_of(steps: Sequence[CallStatement]) -> list[list[Any]]:
    """Runs of kernels between library calls."""
    groups: list[list[Any]] = []
    for step in steps:
        is_kernel = isinstance(step, RunKernel)
        if groups and is_kernel and isinstance(groups[-1][-1], RunKernel):
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def run_by_ctypes(blocks: ArgumentBlocks, memory_of: Arrays) -> bool:
    """Point the blocks at these arrays and launch; whether no check failed."""
    status = np.zeros(1, np.int64)
    for block, slot in blocks.status:
        block[slot] = int(status.ctypes.data)
    for pointer in blocks.pointers:
        base = memory_of[pointer.place.key]
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

    def __init__(self, steps: list[RunKernel], cells: np.ndarray, backend: NativeBackend) -> None:
        self.status = np.zeros(1, np.int64)
        self.nests = [
            SizedNest(backend.block(form, step.params), code, step.places, cells,
                      self.status)
            for step in steps for form, code in zip(step.forms, step.code, strict=True)
        ]
        self._note_operands(steps)

    def _note_operands(self, steps: list[RunKernel]) -> None:
        self.fresh = {p.key: p for step in steps for p in step.places
                      if p.memory.origin in ("target", "temp") and not p.is_static and not p.views}
        self.keys = list(dict.fromkeys(
            p.key for step in steps for p in step.places if not p.is_cell))
        self.not_empty = tuple(dict.fromkeys(s for step in steps for s in step.not_empty))

    def run(
        self, memory_of: Arrays, sizes: Mapping[str, int],
        error: Callable[[], Exception | None] | None,
    ) -> bool:
        """Whether it ran to its end, that is without a failed check.

        Raises ``error()``, if given, where an extremum goes over no elements.
        """
        if error is not None and any(resolve(size, sizes) == 0 for size in self.not_empty):
            raised = error()
            if raised is not None:
                raise raised
        return self._launch(memory_of, sizes)

    def _launch(self, memory_of: Arrays, sizes: Bindings) -> bool:
        self.status[0] = 0
        for nest in self.nests:
            nest.run(memory_of, sizes)
            if self.status[0]:
                return False
        return True


class CalledSegment(SizedSegment):
    """Kernels of a back end whose code is Python functions of arrays."""

    def __init__(self, steps: list[RunKernel], cells: Cells) -> None:
        self.cells = cells
        self.runs = [partial(self._run, step) if step.on_host is None else (
            _of_numbers(step.on_host, cells)) for step in steps]
        self._note_operands(steps)

    def _launch(self, memory_of: Arrays, sizes: Bindings) -> bool:
        return all(run(memory_of, sizes) for run in self.runs)

    def _run(self, step: RunKernel, memory_of: Arrays, sizes: Bindings) -> bool:
        return all(code([self._array(p, memory_of, sizes) for p in step.places], sizes)
                   for code in step.code)

    def _array(self, place: View, memory_of: Arrays, sizes: Bindings) -> np.ndarray:
        """A place's memory as the kernel sees it."""
        if place.is_cell:
            return self.cells.view(place.memory.position, place.dtype).reshape(())
        planned = place.at_sizes(sizes)
        return np.lib.stride_tricks.as_strided(
            memory_of[place.key], planned.shape, planned.strides)


def _of_numbers(step: RunKernel, cells: Cells) -> Callable[[Arrays, Bindings], bool]:
    """A kernel of cells alone, which the CPU runs."""
    backend = backends.backend("cpu")
    assert isinstance(backend, NativeBackend)
    segment = Segment([step], cells.words, backend)

    def run(memory_of: Arrays, sizes: Bindings) -> bool:
        outcome = segment.call()
        return outcome is None or segment.finish(outcome)

    return run
