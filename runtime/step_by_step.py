"""Running a plan step by step from Python: kernels in native segments, libraries between them."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.schedule import ExternStep, KernelStep, Place, Schedule, may_fail
from fusec.errors import located
from fusec.ir import Node
from fusec.ir.bindings import Bindings
from fusec.ops.host_calls import Mark, host_calls, host_objects
from fusec.ops.picking import PickView
from fusec.ops.windows import WindowView

from .call_spec import CallSpec, ResultSpec, cells_of, spec_of
from .cells import Cells
from .failed_checks import do_before, do_before_call, earlier_error
from .plan_source import PlanSource
from .segments import CalledSegment, Segment, SizedSegment

BY_OUTPUTS = (PickView, WindowView)  # views of results at indices that are outputs of the graph


class StepByStep:
    """Blocks and cells for one call at a time, and the function that runs the steps on them."""

    def __init__(self, schedule: Schedule, spec: CallSpec, one_by_one: bool = False) -> None:
        start = time.perf_counter()
        self.schedule, self.spec = schedule, spec
        self.cells = Cells(schedule.cells)
        self.scalars = cells_of(spec.input_types)
        groups = [[s] for s in schedule.steps] if one_by_one else _segments(schedule.steps)
        self.segments = [self._segment(s) for s in groups]
        self.names = [_step_name(g[0]) for g in groups]
        self.fresh = self._fresh()
        # A failed check makes the call start again: then the effects of host calls are undone.
        fallible = any(map(may_fail, schedule.graph.nodes))
        self.objects = host_objects(schedule.graph) if fallible else None
        self.mark: Mark | None = None
        self.source = PlanSource(self, timed=one_by_one)
        self.call = self.source.function()
        self._made_ms = 1e3 * (time.perf_counter() - start)

    @staticmethod
    def of_graph(schedule: Schedule) -> StepByStep:
        """The plan of a sub-graph, whose inputs are its leaves."""
        return StepByStep(schedule, spec_of(schedule.graph))

    def _fresh(self) -> list[Place]:
        """The places that a call allocates at its start, for kernels; libraries allocate theirs."""
        schedule = self.schedule
        places = [p for p in schedule.outputs if isinstance(p, Place) and p.kind == "out"]
        called = {(p.kind, p.number) for s in schedule.externs for p in s.targets}
        fresh = {(p.kind, p.number): p for p in (*places, *schedule.temps) if p.is_static}
        return [p for key, p in fresh.items() if key not in called]

    def _segment(self, steps: list[Any]) -> Segment | SizedSegment | ExternStep:
        if isinstance(steps[0], ExternStep):
            return steps[0]
        if not self.schedule.backend.is_native:
            return CalledSegment(steps, self.cells)
        is_static = all(form.is_static for step in steps for form in step.forms) and all(
            place.is_static for step in steps for place in step.places if isinstance(place, Place))
        kind = Segment if is_static else SizedSegment
        return kind(steps, self.cells.words, self.schedule.backend)

    def run(
        self, leaves: Sequence[Any], times: list[tuple[str, float]] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> list[Any]:
        """Result leaves; ``sizes`` are the symbols that the enclosing plan has bound.

        ``times`` gets (step, microseconds) pairs of a plan made to run one by one.
        """
        symbols = dict(sizes) if sizes else {}
        if not self.spec.calls_host:
            return self.call(leaves, symbols, times)
        with host_calls(leaves):
            return self.call(leaves, symbols, times)

    @property
    def made_ms(self) -> float:
        """Milliseconds that it took to make it, with what its first call had to make."""
        return self._made_ms + sum(s.made_ms for s in self.segments if isinstance(s, Segment))

    # -- what the text of the plan leaves to us

    def begin(self) -> None:
        """Save the state of the user's objects (generators, say), to repeat the call from there."""
        assert self.objects is not None
        self.mark = Mark(self.objects)

    def failure_at(
        self, error: Exception, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> Exception | None:
        """What to raise for an exception in the compiled text; None: the exception itself."""
        assert error.__traceback__ is not None
        node = self.source.node_at(error.__traceback__.tb_lineno)
        return None if node is None else self.failure(error, node, leaves, captured)

    def failure(
        self, error: Exception, node: Node, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> Exception:
        """The error of a library call, or what comes before it in the program."""
        if self.spec.calls_host and self.mark is None:  # it cannot be repeated
            return located(error, node.loc)
        earlier = self.repeated(partial(earlier_error, node), leaves, captured)
        if earlier is None:
            do_before_call(node, self.schedule, self._inputs(leaves, captured))
        return earlier or located(error, node.loc)

    def repeated(
        self, find: Callable[[Schedule, Sequence[Any]], Any], leaves: Sequence[Any],
        captured: Sequence[Any],
    ) -> Any:
        """The error that NumPy raises; generators draw again what they drew."""
        inputs = self._inputs(leaves, captured)
        error = self._searched(find, inputs)
        if error is not None:
            do_before(error, self.schedule, inputs)
        return error

    def _searched(self, find: Callable[[Schedule, Sequence[Any]], Any], inputs: list[Any]) -> Any:
        if self.mark is None or self.objects is None:
            return find(self.schedule, inputs)
        now = Mark(self.objects)
        self.mark.restore()
        error = find(self.schedule, inputs)
        if error is None:
            now.restore()
        return error

    def _inputs(self, leaves: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        """The graph's inputs: a call's leaves, then what was captured from outside."""
        of_leaf = zip(self.spec.leaves, leaves, strict=True)
        leaf_of = {spec.input: leaf for spec, leaf in of_leaf}
        first_captured = len(self.spec.input_types) - len(captured)
        return [*(leaf_of.get(i) for i in range(first_captured)), *captured]

    def results_of(
        self, graph_outputs: list[Any], leaves: Sequence[Any], captured: Sequence[Any],
        sizes: Bindings,
    ) -> list[Any]:
        """The result leaves; copies of constants share memory where the constants do."""
        inputs = self._inputs(leaves, captured)
        copies: dict[int, np.ndarray] = {}
        return [_result(r, graph_outputs, inputs, copies, sizes) for r in self.spec.results]


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
        return _copied(result.value, copies) if type(result.value) is np.ndarray else (
            copy.deepcopy(result.value))
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
