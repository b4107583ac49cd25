"""Running a plan step by step from Python: kernels in native segments, libraries between them."""

from __future__ import annotations

import ctypes
import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.codegen.cpu.compile import NEST_SIGNATURE
from fusec.errors import located
from fusec.ops.picking import PickView

from . import launch, launch_spec, memory, threads
from .call_spec import CallSpec, ResultSpec, cell_of_input
from .failed_checks import check_error
from .native import NativeUnavailableError
from .plan import ExternStep, KernelStep, Place, Schedule, make_blocks, read_cell, write_cell
from .whole_call import (
    RELEASE_GIL_NS,
    native_steps,
    partial_temps,
    status_slots,
    stores_of,
)


class StepByStep:
    """Blocks and cells for one call at a time, run step by step from Python."""

    def __init__(self, schedule: Schedule, spec: CallSpec, one_by_one: bool = False) -> None:
        self.schedule, self.spec = schedule, spec
        self.cells = np.zeros(max(schedule.cells, 1), np.int64)
        groups = [[s] for s in schedule.steps] if one_by_one else _segments(schedule.steps)
        self.segments = [self._segment(s) for s in groups]
        self.names = [_step_name(g[0]) for g in groups]
        places = [p for p in schedule.outputs if isinstance(p, Place) and p.kind == "out"]
        fresh = {(p.kind, p.number): _allocator(p) for p in (*places, *schedule.temps)}
        targets = [(p.kind, p.number) for s in schedule.externs for p in s.targets]
        self.called = {key: fresh.pop(key) for key in targets if key in fresh}
        self.fresh = list(fresh.items())

    def _segment(self, steps: list[Any]) -> Any:
        if isinstance(steps[0], ExternStep):
            return steps[0]
        return _Segment(steps, self.cells)

    def run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None
    ) -> list[Any]:
        memory_of: dict[tuple[str, int], np.ndarray] = {}
        inputs = self._load(leaves, memory_of)
        segment: ExternStep | _Segment
        for key, new in self.fresh:
            memory_of[key] = new()
        for name, segment in zip(self.names, self.segments, strict=True):
            start = time.perf_counter() if times is not None else 0.0
            if isinstance(segment, ExternStep):
                self._library_call(segment, memory_of)
            elif not segment.run(memory_of):
                raise check_error(self.schedule.graph, inputs)
            if times is not None:
                times.append((name, 1e6 * (time.perf_counter() - start)))
        graph_outputs = [self._output(i, p, memory_of)
                         for i, p in enumerate(self.schedule.outputs)]
        return results_of(self.spec.results, graph_outputs, inputs)

    def _load(
        self, leaves: Sequence[Any], memory_of: dict[tuple[str, int], np.ndarray]
    ) -> list[Any]:
        spec = self.spec
        inputs: list[Any] = [None] * len(spec.input_types)
        for leaf, value in zip(spec.leaves, leaves, strict=True):
            if leaf.input >= 0:
                inputs[leaf.input] = value
        inputs[len(inputs) - len(spec.captured):] = [
            c() if callable(c) else c for c in spec.captured]
        for index, (value, type_) in enumerate(zip(inputs, spec.input_types, strict=True)):
            if type_.kind == "array":
                memory_of["arg", index] = value
            else:
                write_cell(self.cells, cell_of_input(spec, index), type_.dtype, value)
        return inputs

    def _array(self, place: Any, memory_of: dict[tuple[str, int], np.ndarray]) -> Any:
        if not isinstance(place, Place):
            return place
        if place.kind == "cell":
            number = read_cell(self.cells, place.number, place.dtype)
            if not place.views:
                return number
            base = np.asarray(number, place.dtype)
        else:
            base = memory_of[place.kind, place.number]
        for view in place.views:
            base = view(base)
        return base

    def _library_call(
        self, step: ExternStep, memory_of: dict[tuple[str, int], np.ndarray]
    ) -> None:
        sources = [self._array(p, memory_of) for p in step.sources]
        memory = [functools.partial(self._target, p, memory_of) for p in step.targets]
        try:
            results = step.run(sources, memory)
        except Exception as error:
            raise located(error, step.node.loc) from None
        for place, result in zip(step.targets, results, strict=True):
            if place.kind == "cell":
                write_cell(self.cells, place.number, result.dtype, result)
            else:
                memory_of[place.kind, place.number] = result

    def _target(
        self, place: Place, memory_of: dict[tuple[str, int], np.ndarray]
    ) -> np.ndarray:
        """Where a library call writes a result."""
        if place.kind == "cell":
            return np.empty((), place.dtype)
        found = memory_of.get((place.kind, place.number))
        return self.called[place.kind, place.number]() if found is None else found

    def _output(
        self, index: int, place: Any, memory_of: dict[tuple[str, int], np.ndarray]
    ) -> Any:
        value = self._array(place, memory_of)
        type_ = self.spec.output_types[index]
        if type_.kind == "weak" and isinstance(value, np.generic):
            return value.item()
        return value


SMALL_BYTES = 1 << 16  # below this NumPy's own allocation is as good and quicker


def _allocator(place: Place) -> Callable[[], np.ndarray]:
    """Makes fresh memory in the place's layout."""
    order = sorted(range(len(place.shape)), key=lambda d: -place.strides[d])
    shape, dtype = place.shape, place.dtype
    in_order = order == list(range(len(order)))
    if in_order and math.prod(shape) * dtype.itemsize < SMALL_BYTES:
        return lambda: np.empty(shape, dtype)
    return lambda: memory.empty(shape, dtype, "C" if in_order else order)


def results_of(
    results: Sequence[ResultSpec], graph_outputs: list[Any], inputs: list[Any]
) -> list[Any]:
    """The result leaves; copies of constants share memory where the constants do."""
    copies: dict[int, np.ndarray] = {}
    return [_result(r, graph_outputs, inputs, copies) for r in results]


def _copied(constant: np.ndarray, copies: dict[int, np.ndarray]) -> np.ndarray:
    """The constant in this call's copy of the array that it is, or is a view of."""
    root = constant
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.flags.forc and id(root) not in copies:
        copies[id(root)] = root.copy(order="K")
    copy = copies.get(id(root))
    if constant is root and copy is not None and constant.flags.writeable:
        return copy
    if copy is None or not constant.size:
        result = constant.copy(order="K")
    else:
        offset = constant.ctypes.data - root.ctypes.data
        memory: Any = copy.ravel(order="K")
        result = np.ndarray(constant.shape, constant.dtype, memory, offset, constant.strides)
    result.flags.writeable = constant.flags.writeable
    return result


def _result(
    result: ResultSpec, graph_outputs: list[Any], inputs: list[Any], copies: dict[int, np.ndarray]
) -> Any:
    if result.kind == "const":
        return result.value
    if result.kind == "fresh":
        return _copied(result.value, copies)
    value = graph_outputs[result.index] if result.kind == "graph" else inputs[result.index]
    for view in result.views:
        value = view(value, graph_outputs) if type(view) is PickView else view(value)
    return value


def _step_name(step: KernelStep | ExternStep) -> str:
    return step.kernel.name if isinstance(step, KernelStep) else step.node.name


def _segments(steps: Sequence[KernelStep | ExternStep]) -> list[list[Any]]:
    """Runs of kernels between library calls."""
    groups: list[list[Any]] = []
    for step in steps:
        is_kernel = isinstance(step, KernelStep)
        if groups and is_kernel and isinstance(groups[-1][-1], KernelStep):
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


class _Segment:
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
        return self._run_by_ctypes(memory_of)  # an unaligned operand, say, does not fit the plan

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

    def _run_by_ctypes(self, memory_of: dict[tuple[str, int], np.ndarray]) -> bool:
        status = np.zeros(1, np.int64)
        for block, slot in self.blocks.status:
            block[slot] = int(status.ctypes.data)
        for pointer in self.blocks.pointers:
            base = memory_of[pointer.place.kind, pointer.place.number]
            pointer.block[pointer.slot] = base.__array_interface__["data"][0] + pointer.offset
        scratch = [ctypes.create_string_buffer(n) for _, _, n in self.blocks.partials]
        for buffer, (block, slot, _) in zip(scratch, self.blocks.partials, strict=True):
            block[slot] = ctypes.addressof(buffer)
        for item in self.blocks.launches:
            address = int(item.block.ctypes.data)
            if item.parallel:
                threads.parallel_for(item.function, address, item.tasks, item.grain)
            else:
                NEST_SIGNATURE(item.function)(address, 0, item.tasks)
            if status[0]:
                return False
        return True
