"""Running a plan: one native call when it is kernels only, else segments around library calls.

An `Executable` is immutable and shared; its `_Instance` s own the argument blocks and cells that a
call writes to, so a call in another thread takes another instance.
"""

from __future__ import annotations

import ctypes
import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusec.codegen.cpu.compile import NEST_SIGNATURE
from fusec.errors import UnsupportedError, located
from fusec.ir.types import RUN_TIME_INT

from . import launch, launch_spec, memory, threads
from .native import NativeUnavailableError
from .plan import (
    Blocks,
    ExternStep,
    KernelStep,
    Place,
    Schedule,
    make_blocks,
    read_cell,
    write_cell,
)

# Above this the GIL is released around the kernels; giving it up and taking it back costs 0.1 µs
# alone but a switch interval of 5 ms when another thread wants it.
RELEASE_GIL_NS = 50_000.0
_PYTHON = {"b": bool, "i": int, "u": int, "f": float}


@dataclass(frozen=True)
class LeafSpec:
    """One argument leaf: an input of the graph (``input`` >= 0) or a static Python value."""

    input: int
    value: Any = None
    alias_of: int = -1  # leaf with the same memory


@dataclass(frozen=True)
class ResultSpec:
    """One result leaf: ``graph`` output, ``input`` memory, ``fresh`` copy or ``const``."""

    kind: str
    index: int = 0
    views: tuple[Callable[[np.ndarray], np.ndarray], ...] = ()
    value: Any = None


@dataclass(frozen=True)
class CallSpec:
    """What an executable needs to know about calls besides the schedule."""

    name: str
    leaves: tuple[LeafSpec, ...]
    paths: tuple[str, ...]
    input_types: tuple[Any, ...]
    input_strides: tuple[tuple[int, ...], ...]
    output_types: tuple[Any, ...]
    captured: tuple[np.ndarray, ...]
    results: tuple[ResultSpec, ...]
    updates: tuple[int, ...]
    bare: bool  # one result, not in a tuple


class Executable:
    """A compiled graph ready to be called with leaves."""

    def __init__(self, schedule: Schedule, spec: CallSpec) -> None:
        self.schedule, self.spec = schedule, spec
        self._idle: list[_Instance] = []
        arrays = [r.index for r in spec.results if r.kind == "graph"]
        once = len(set(arrays)) == len(arrays)  # the launcher makes an array for each result
        self.uses_native = launch.launcher_status().available and once and (
            not schedule.externs) and all(
            r.kind == "const" or (r.kind == "graph" and not r.views) or
            (r.kind == "input" and not r.views) for r in spec.results
        ) and not spec.captured
        self.fast = self._fast_call() if launch.launcher_status().available else None

    def _fast_call(self) -> Callable[..., Any]:
        """Guards and runs a call of positional leaves; answers ``MISS`` when they do not fit."""
        if self.uses_native:
            return _NativeInstance(self.schedule, self.spec).plan.call
        fits = _guard_plan(self.spec).call
        bare = self.spec.bare

        def call(*leaves: Any) -> Any:
            if fits(*leaves) is launch.MISS:
                return launch.MISS
            results = self._run_checked(leaves)
            return results[0] if bare else tuple(results)

        return call

    def run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None
    ) -> list[Any]:
        """Result leaves for argument leaves that match the trace key.

        With ``times`` kernels run one by one, and (step, microseconds) pairs are added to it.
        """
        if self.spec.updates:
            self._check_overlap(leaves)
        if times is not None:
            return _Instance(self.schedule, self.spec, one_by_one=True).run(leaves, times)
        return self._run_checked(leaves)

    def _run_checked(self, leaves: Sequence[Any]) -> list[Any]:
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = _Instance(self.schedule, self.spec)
        try:
            return instance.run(leaves)
        finally:
            self._idle.append(instance)

    def _check_overlap(self, leaves: Sequence[Any]) -> None:
        """Refuse partly overlapping arguments when one of them is written."""
        spec = self.spec
        arrays = [(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
        for i, written in arrays:
            if spec.leaves[i].input not in spec.updates:
                continue
            for j, other in arrays:
                same = i == j or i in (spec.leaves[j].alias_of, j) or spec.leaves[i].alias_of == j
                if not same and np.may_share_memory(written, other):
                    raise UnsupportedError(
                        f"argument {spec.paths[i]} is written and overlaps argument "
                        f"{spec.paths[j]} in memory",
                        cure=f"pass a copy of {spec.paths[j]}, or the same array for both",
                    )


# ------------------------------------------------------------------------------- kernels natively


def _stores(pointers: Sequence[Any], kind: str, number: int) -> tuple[launch_spec.Store, ...]:
    return tuple(
        launch_spec.Store(p.address, p.offset) for p in pointers
        if p.place.kind == kind and p.place.number == number
    )


def _native_steps(blocks: Blocks) -> tuple[launch_spec.Step, ...]:
    return tuple(
        launch_spec.Step(item.function, int(item.block.ctypes.data), item.tasks, item.grain,
                    item.parallel)
        for item in blocks.launches
    )


def _partial_temps(blocks: Blocks) -> list[launch_spec.Temp]:
    return [
        launch_spec.Temp(nbytes, (launch_spec.Store(int(block.ctypes.data) + 8 * slot),))
        for block, slot, nbytes in blocks.partials
    ]


class _NativeInstance:
    """A whole call as one native plan."""

    def __init__(self, schedule: Schedule, spec: CallSpec) -> None:
        self.cells = np.zeros(max(schedule.cells, 1), np.int64)
        blocks, work = make_blocks(schedule.kernels, self.cells)
        outs = [self._out(schedule, spec, r, blocks) for r in spec.results]
        hidden = [
            launch_spec.Temp(p.dtype.itemsize * math.prod(p.shape),
                             _stores(blocks.pointers, "temp", i))
            for i, p in enumerate(schedule.temps)
        ]
        self.plan = launch.Plan(launch_spec.PlanSpec(
            args=tuple(
                _leaf_guard(spec, leaf, _stores(blocks.pointers, "arg", leaf.input), self.cells)
                for leaf in spec.leaves
            ),
            outs=tuple(outs), steps=_native_steps(blocks),
            temps=tuple(hidden + _partial_temps(blocks)), relations=_relations(spec),
            release_gil=work > RELEASE_GIL_NS, as_tuple=not spec.bare,
            keep=(self.cells, blocks, schedule), name=spec.name,
        ))

    def _out(
        self, schedule: Schedule, spec: CallSpec, result: ResultSpec, blocks: Blocks
    ) -> Any:
        if result.kind == "const":
            return launch_spec.ObjectOut(result.value)
        if result.kind == "input":
            index = next(i for i, leaf in enumerate(spec.leaves) if leaf.input == result.index)
            return launch_spec.ArgOut(index)
        place = schedule.outputs[result.index]
        type_ = spec.output_types[result.index]
        if not isinstance(place, Place):
            return launch_spec.ObjectOut(place)
        if place.kind == "cell":
            kind = _PYTHON[type_.dtype.kind] if type_.kind == "weak" else type_.dtype
            return launch_spec.ScalarOut(kind, int(self.cells.ctypes.data) + 8 * place.number)
        return launch_spec.ArrayOut(place.dtype, place.shape, place.strides,
                               _stores(blocks.pointers, "out", place.number))


def _guard_plan(spec: CallSpec) -> launch.Plan:
    """A plan that runs nothing: it only compares the arguments with the signature."""
    cells = np.zeros(max(len(_cells_of(spec.input_types)), 1), np.int64)
    return launch.Plan(launch_spec.PlanSpec(
        args=tuple(_leaf_guard(spec, leaf, (), cells) for leaf in spec.leaves),
        outs=(launch_spec.ObjectOut(None),), steps=(), relations=_relations(spec), keep=(cells,),
        name=spec.name,
    ))


def _leaf_guard(
    spec: CallSpec, leaf: LeafSpec, stores: tuple[launch_spec.Store, ...], cells: np.ndarray
) -> Any:
    """What a leaf must be; arrays go to ``stores``, scalars to their cell."""
    if leaf.input < 0:
        if type(leaf.value) is int and -(1 << 63) <= leaf.value < 1 << 63:
            return launch_spec.IntArg((), leaf.value, leaf.value)
        return launch_spec.ObjectArg(leaf.value)
    type_ = spec.input_types[leaf.input]
    if type_.kind == "array":
        strides = tuple(
            None if size == 1 else s
            for size, s in zip(type_.shape, spec.input_strides[leaf.input], strict=True)
        )
        return launch_spec.ArrayArg(type_.dtype, type_.shape, strides, stores,
                                    writeable=leaf.input in spec.updates)
    cell = (launch_spec.Store(int(cells.ctypes.data) + 8 * _cell_of_input(spec, leaf.input)),)
    if type_.kind == "scalar":
        return launch_spec.ScalarArg(type_.dtype.type, cell)
    if type_.dtype.kind == "i":
        return launch_spec.IntArg(cell, *RUN_TIME_INT)
    return launch_spec.ScalarArg(float, cell)


def _relations(spec: CallSpec) -> tuple[Any, ...]:
    """Aliased leaves must be the same memory; written ones must not overlap any other."""
    result: list[Any] = []
    arrays = [
        i for i, leaf in enumerate(spec.leaves)
        if leaf.input >= 0 and spec.input_types[leaf.input].kind == "array"
    ]
    for i in arrays:
        if spec.leaves[i].alias_of >= 0 and spec.updates:
            result.append(launch_spec.Same(spec.leaves[i].alias_of, i))
    for i in arrays:
        if spec.leaves[i].input in spec.updates:
            result.extend(
                launch_spec.Disjoint(i, j) for j in arrays
                if j != i and spec.leaves[j].alias_of != i and spec.leaves[i].alias_of != j
            )
    return tuple(result)


@functools.cache
def _cells_of(types: tuple[Any, ...]) -> dict[int, int]:
    """Cell of each scalar input: the scheduler numbers them in input order first."""
    scalars = [i for i, t in enumerate(types) if t.kind != "array"]
    return {i: number for number, i in enumerate(scalars)}


def _cell_of_input(spec: CallSpec, index: int) -> int:
    return _cells_of(spec.input_types)[index]


# --------------------------------------------------------------------------- segments and library


class _Instance:
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
        for key, new in self.fresh:
            memory_of[key] = new()
        for name, segment in zip(self.names, self.segments, strict=True):
            start = time.perf_counter() if times is not None else 0.0
            if isinstance(segment, ExternStep):
                self._library_call(segment, memory_of)
            else:
                segment.run(memory_of)
            if times is not None:
                times.append((name, 1e6 * (time.perf_counter() - start)))
        graph_outputs = [self._output(i, p, memory_of)
                         for i, p in enumerate(self.schedule.outputs)]
        return [_result(r, graph_outputs, inputs) for r in self.spec.results]

    def _load(
        self, leaves: Sequence[Any], memory_of: dict[tuple[str, int], np.ndarray]
    ) -> list[Any]:
        spec = self.spec
        inputs: list[Any] = [None] * len(spec.input_types)
        for leaf, value in zip(spec.leaves, leaves, strict=True):
            if leaf.input >= 0:
                inputs[leaf.input] = value
        inputs[len(inputs) - len(spec.captured):] = spec.captured
        for index, (value, type_) in enumerate(zip(inputs, spec.input_types, strict=True)):
            if type_.kind == "array":
                memory_of["arg", index] = value
            else:
                write_cell(self.cells, _cell_of_input(spec, index), type_.dtype, value)
        return inputs

    def _array(self, place: Any, memory_of: dict[tuple[str, int], np.ndarray]) -> Any:
        if not isinstance(place, Place):
            return place
        if place.kind == "cell":
            return read_cell(self.cells, place.number, place.dtype)
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


def _result(result: ResultSpec, graph_outputs: list[Any], inputs: list[Any]) -> Any:
    if result.kind == "const":
        return result.value
    if result.kind == "fresh":
        return result.value.copy()
    value = graph_outputs[result.index] if result.kind == "graph" else inputs[result.index]
    for view in result.views:
        value = view(value)
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

    def run(self, memory_of: dict[tuple[str, int], np.ndarray]) -> None:
        arrays = [memory_of[key] for key in self.keys]
        if self.plan is None and launch.launcher_status().available:
            self.plan = self._make_plan(arrays)
        # None says it ran; an unaligned operand, say, does not fit the plan.
        if self.plan is None or self.plan.call(*arrays) is not None:
            self._run_by_ctypes(memory_of)

    def _make_plan(self, arrays: list[np.ndarray]) -> launch.Plan | None:
        args = tuple(
            launch_spec.ArrayArg(a.dtype, a.shape, tuple(None if d == 1 else s for d, s in
                                                    zip(a.shape, a.strides, strict=True)),
                            _stores(self.blocks.pointers, *key))
            for key, a in zip(self.keys, arrays, strict=True)
        )
        try:
            return launch.Plan(launch_spec.PlanSpec(
                args=args, outs=(launch_spec.ObjectOut(None),), steps=_native_steps(self.blocks),
                temps=tuple(_partial_temps(self.blocks)), release_gil=self.work > RELEASE_GIL_NS,
                keep=(self.blocks,), name="segment",
            ))
        except NativeUnavailableError:
            return None

    def _run_by_ctypes(self, memory_of: dict[tuple[str, int], np.ndarray]) -> None:
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
