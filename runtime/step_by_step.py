"""Running a plan step by step from Python: kernels in native segments, libraries between them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.errors import located
from fusec.ir import Graph
from fusec.ir.dims import Bindings, bind
from fusec.ops.host_calls import Mark, host_calls, host_objects
from fusec.ops.picking import PickView
from fusec.ops.windows import WindowView

from .call_spec import CallSpec, ResultSpec, cells_of
from .cells import Cells
from .failed_checks import check_error, numpy_error
from .plan import ExternStep, KernelStep, Place, Schedule, may_fail
from .segments import Segment, SizedSegment, allocator, sized_allocator

BY_OUTPUTS = (PickView, WindowView)  # views of results whose places are outputs of the graph


class StepByStep:
    """Blocks and cells for one call at a time, run step by step from Python."""

    def __init__(self, schedule: Schedule, spec: CallSpec, one_by_one: bool = False) -> None:
        self.schedule, self.spec = schedule, spec
        self.cells = Cells(schedule.cells)
        self.scalars = cells_of(spec.input_types)
        groups = [[s] for s in schedule.steps] if one_by_one else _segments(schedule.steps)
        self.segments = [self._segment(s) for s in groups]
        self.names = [_step_name(g[0]) for g in groups]
        places = [p for p in schedule.outputs if isinstance(p, Place) and p.kind == "out"]
        fresh = {(p.kind, p.number): allocator(p) for p in (*places, *schedule.temps)
                 if p.is_static}
        targets = [(p.kind, p.number) for s in schedule.externs for p in s.targets]
        self.called = {key: fresh.pop(key) for key in targets if key in fresh}
        self.fresh = list(fresh.items())
        self.sizes: dict[str, int] = {}
        # Kernels with checks may make the call start again: then host calls are taken back.
        fallible = any(map(may_fail, schedule.graph.nodes))
        self.objects = host_objects(schedule.graph) if fallible else None
        self.mark: Mark | None = None
        self.sized: dict[tuple[str, int], Callable[[Mapping[str, int]], np.ndarray]] = {}

    def _segment(self, steps: list[Any]) -> Any:
        if isinstance(steps[0], ExternStep):
            return steps[0]
        is_static = all(form.is_static for step in steps for form in step.forms) and all(
            place.is_static for step in steps for place in step.places if isinstance(place, Place))
        made = Segment if is_static else SizedSegment
        return made(steps, self.cells.words)

    def run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> list[Any]:
        """Result leaves; ``sizes`` are symbols known already, of the plan around this one."""
        if not self.spec.calls_host:
            return self._run(leaves, times, sizes)
        with host_calls(leaves):
            return self._run(leaves, times, sizes)

    def _run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None,
        sizes: Mapping[str, int] | None,
    ) -> list[Any]:
        if self.objects is not None:
            self.mark = Mark(self.objects)
        memory_of: dict[tuple[str, int], np.ndarray] = {}
        self.sizes = dict(sizes or {})
        inputs = self._load(leaves, memory_of)
        segment: ExternStep | Segment | SizedSegment
        for key, new in self.fresh:
            memory_of[key] = new()
        for name, segment in zip(self.names, self.segments, strict=True):
            start = time.perf_counter() if times is not None else 0.0
            if isinstance(segment, ExternStep):
                self._library_call(segment, memory_of)
            else:
                self._kernels(segment, memory_of, inputs)
            if times is not None:
                times.append((name, 1e6 * (time.perf_counter() - start)))
        graph_outputs = [self._output(i, p, memory_of)
                         for i, p in enumerate(self.schedule.outputs)]
        return results_of(self.spec.results, graph_outputs, inputs, self.sizes)

    def _kernels(
        self, segment: Segment | SizedSegment, memory_of: dict[tuple[str, int], np.ndarray],
        inputs: Sequence[Any],
    ) -> None:
        if isinstance(segment, SizedSegment):
            done = segment.run(
                memory_of, self.sizes, lambda: self._repeated(numpy_error, inputs))
        else:
            done = segment.run(memory_of)
        if not done:
            raise self._repeated(check_error, inputs)

    def _repeated(self, find: Callable[[Graph, Sequence[Any]], Any], inputs: Sequence[Any]) -> Any:
        """The error that NumPy raises; generators draw again what they drew."""
        if self.mark is None or self.objects is None:
            return find(self.schedule.graph, inputs)
        now = Mark(self.objects)
        self.mark.restore()
        error = find(self.schedule.graph, inputs)
        if error is None:
            now.restore()
        return error

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
                if not type_.is_static:
                    bind(type_.shape, value.shape, self.sizes)
            else:
                self.cells.write(self.scalars[index], type_.dtype, value)
        return inputs

    def _array(self, place: Any, memory_of: dict[tuple[str, int], np.ndarray]) -> Any:
        if not isinstance(place, Place):
            return place
        if place.kind == "cell":
            number = self.cells.read(place.number, place.dtype)
            if not place.views:
                return number
            base = np.asarray(number, place.dtype)
        else:
            base = memory_of[place.kind, place.number]
        for view in place.views:
            base = view(base, self.sizes)
        return base

    def _library_call(
        self, step: ExternStep, memory_of: dict[tuple[str, int], np.ndarray]
    ) -> None:
        sources = [self._array(p, memory_of) for p in step.sources]
        memory = [functools.partial(self._target, p, memory_of) for p in step.targets]
        try:
            results = step.run(sources, memory, self.sizes)
        except Exception as error:
            raise located(error, step.node.loc) from None
        for place, result in zip(step.targets, results, strict=True):
            if place.kind == "cell":
                self.cells.write(place.number, result.dtype, result)
            else:
                memory_of[place.kind, place.number] = result

    def _target(
        self, place: Place, memory_of: dict[tuple[str, int], np.ndarray]
    ) -> np.ndarray:
        """Where a library call writes a result."""
        if place.kind == "cell":
            return np.empty((), place.dtype)
        key = place.kind, place.number
        found = memory_of.get(key)
        if found is not None:
            return found
        if key in self.called:
            return self.called[key]()
        if key not in self.sized:
            self.sized[key] = sized_allocator(place)
        return self.sized[key](self.sizes)

    def _output(
        self, index: int, place: Any, memory_of: dict[tuple[str, int], np.ndarray]
    ) -> Any:
        value = self._array(place, memory_of)
        type_ = self.spec.output_types[index]
        if type_.kind == "weak" and isinstance(value, np.generic):
            return value.item()
        return value


def results_of(
    results: Sequence[ResultSpec], graph_outputs: list[Any], inputs: list[Any],
    sizes: Bindings,
) -> list[Any]:
    """The result leaves; copies of constants share memory where the constants do."""
    copies: dict[int, np.ndarray] = {}
    return [_result(r, graph_outputs, inputs, copies, sizes) for r in results]


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
    result: ResultSpec, graph_outputs: list[Any], inputs: list[Any], copies: dict[int, np.ndarray],
    sizes: Bindings,
) -> Any:
    if result.kind == "const":
        return result.value
    if result.kind == "fresh":
        return _copied(result.value, copies)
    value = graph_outputs[result.index] if result.kind == "graph" else inputs[result.index]
    for view in result.views:
        value = view(value, graph_outputs) if isinstance(view, BY_OUTPUTS) else (
            view(value, sizes))
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
