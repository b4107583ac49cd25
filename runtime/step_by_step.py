"""Running a plan step by step from Python: kernels in native segments, libraries between them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fusec.errors import located
from fusec.ir import Graph, TensorType
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
        self.memory: dict[tuple[str, int], np.ndarray] = {}  # by place, during a call
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
        self.load = self._loader()
        self.outputs = [self._output(p, t)
                        for p, t in zip(schedule.outputs, spec.output_types, strict=True)]
        is_plain = all(r.kind == "graph" and not r.views for r in spec.results)
        self.plain = [r.index for r in spec.results] if is_plain else None

    def _segment(self, steps: list[Any]) -> Any:
        if isinstance(steps[0], ExternStep):
            return self._prepared(steps[0])
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
        self.memory = memory_of = {}
        self.sizes = dict(sizes) if sizes else {}
        try:
            inputs = self.load(leaves)
            for key, new in self.fresh:
                memory_of[key] = new()
            for name, segment in zip(self.names, self.segments, strict=True):
                start = time.perf_counter() if times is not None else 0.0
                if isinstance(segment, (Segment, SizedSegment)):
                    self._kernels(segment, memory_of, inputs)
                else:
                    segment()
                if times is not None:
                    times.append((name, 1e6 * (time.perf_counter() - start)))
            found = [output() for output in self.outputs]
        finally:
            self.memory = {}
        if self.plain is not None:
            return [found[i] for i in self.plain]
        return results_of(self.spec.results, found, inputs, self.sizes)

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

    # -- what is decided once, for every call

    def _loader(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Takes a call's leaves as the graph's inputs, puts them in their places, returns them."""
        spec = self.spec
        leaf_of = {leaf.input: i for i, leaf in enumerate(spec.leaves) if leaf.input >= 0}
        takes = [leaf_of.get(i) for i in range(len(spec.input_types) - len(spec.captured))]
        arrays, sized, numbers = [], [], []
        for index, type_ in enumerate(spec.input_types):
            if type_.kind == "array":
                arrays.append((index, ("arg", index)))
                if not type_.is_static:
                    sized.append((index, type_.shape))
            else:
                numbers.append((index, self.scalars[index], type_.dtype))

        def load(leaves: Sequence[Any]) -> list[Any]:
            inputs: list[Any] = [None if i is None else leaves[i] for i in takes]
            inputs += [c() if callable(c) else c for c in spec.captured]
            for index, key in arrays:
                self.memory[key] = inputs[index]
            for index, shape in sized:
                bind(shape, inputs[index].shape, self.sizes)
            for index, cell, dtype in numbers:
                self.cells.write(cell, dtype, inputs[index])
            return inputs

        return load

    def _reader(self, place: Any) -> Callable[[], Any]:
        """Gives what a place holds: an array, or a cell's NumPy scalar."""
        if not isinstance(place, Place):
            return lambda: place
        if place.views:
            return lambda: self._view(place)
        if place.kind == "cell":
            cell = self.cells.view(place.number, place.dtype)
            return lambda: cell[0]
        key = place.kind, place.number
        return lambda: self.memory[key]

    def _view(self, place: Place) -> np.ndarray:
        base = self._reader(replace(place, views=()))()
        base = np.asarray(base, place.dtype) if place.kind == "cell" else base
        for view in place.views:
            base = view(base, self.sizes)
        return base

    def _output(self, place: Any, type_: TensorType) -> Callable[[], Any]:
        read = self._reader(place)
        if type_.kind != "weak":
            return read

        def number() -> Any:
            value = read()
            return value.item() if isinstance(value, np.generic) else value

        return number

    def _prepared(self, step: ExternStep) -> Callable[[], None]:
        """Runs a library call."""
        sources = [self._reader(p) for p in step.sources]
        targets = [((p.kind, p.number), self._cell(p)) for p in step.targets]
        memory = [functools.partial(self._target, p) if cell is None else functools.partial(
            _itself, cell) for p, (_, cell) in zip(step.targets, targets, strict=True)]

        def call() -> None:
            try:
                results = step.run([read() for read in sources], memory, self.sizes)
            except Exception as error:
                raise located(error, step.node.loc) from None
            for (key, cell), result in zip(targets, results, strict=True):
                if cell is None:
                    self.memory[key] = result
                elif result is not cell:
                    cell[...] = result

        return call

    def _cell(self, place: Place) -> np.ndarray | None:
        """The cell that a library call writes a scalar to, as an array of rank 0."""
        if place.kind != "cell":
            return None
        return self.cells.view(place.number, place.dtype).reshape(())

    def _target(self, place: Place) -> np.ndarray:
        """Where a library call writes an array."""
        key = place.kind, place.number
        found = self.memory.get(key)
        if found is not None:
            return found
        if key in self.called:
            return self.called[key]()
        if key not in self.sized:
            self.sized[key] = sized_allocator(place)
        return self.sized[key](self.sizes)


def _itself(array: np.ndarray) -> np.ndarray:
    return array


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
