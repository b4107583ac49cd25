"""Running a plan over several devices: a step, then the effects of the call.

Arguments and Variables are written when every action has ended, so after every check has passed.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import may_fail
from fusec.codegen.plan.plan_over_devices import PlanOverDevices
from fusec.core import timeline
from fusec.core.occupancy import HoldOfPlan
from fusec.ir import Node
from fusec.ir.sizes.bindings import bind
from fusec.ops.calls.host_calls import host_objects
from fusec.runtime.call_endings import CallEndings
from fusec.runtime.call_spec import CallSpec, spec_of
from fusec.runtime.devices.variable_copies import knowing
from fusec.runtime.executor import Executable
from fusec.runtime.failed_checks import check_error

from .step import Step
from .step_program import Failure, StepProgram, Times
from .task_runs import TaskError, TaskRun

FAR = 1 << 62


class PartitionedExecutable(Executable):
    """A graph compiled for several devices, ready to be called with leaves."""

    def __init__(self, call_plan: PlanOverDevices, spec: CallSpec) -> None:
        self.program = step_program(call_plan, spec)
        super().__init__(call_plan, spec)
        self._one_by_one = self._idle  # a step is told each time whether to time its tasks

    @staticmethod
    def of_graph(call_plan: PlanOverDevices) -> PartitionedPlan:
        """The plan of a sub-graph, whose inputs are its leaves: its steps are frames of another."""
        return PartitionedPlan(
            call_plan, spec := spec_of(call_plan.graph), step_program(call_plan, spec),
            call_plan.graph.name)

    def _hold(self) -> contextlib.AbstractContextManager[None]:
        """Where arguments are a device's, values of Variables stay there."""
        assert isinstance(self.call_plan, PlanOverDevices)
        stays_away = self.call_plan.residents is not None
        return HoldOfPlan(self.spec.holds, stays_away) if self.spec.variables else super()._hold()

    def _run_recorded(self, leaves: Sequence[Any]) -> list[Any]:
        """As ever: on the timeline are the tasks, each with its steps."""
        with self._hold():
            return self._run_steps(leaves)

    def _new_instance(self, one_by_one: bool = False) -> Any:
        assert isinstance(self.call_plan, PlanOverDevices)
        return PartitionedPlan(self.call_plan, self.spec, self.program)

    def _run_spanned(self, leaves: Sequence[Any]) -> list[Any]:
        """Tasks put their steps on the timeline themselves, in the threads of their devices."""
        return self._run_steps(leaves)


def step_program(call_plan: PlanOverDevices, spec: CallSpec) -> StepProgram:
    """The tables of all steps of the plan: its tasks ready to run, who waits for whom."""
    actions = call_plan.actions
    followers: list[list[int]] = [[] for _ in actions]
    for action in actions:
        for before in action.after:
            followers[before].append(action.number)
    uses = [0] * call_plan.values
    kept = [n for n in call_plan.results if n is not None] + [n for _, n in call_plan.writes]
    for number in (*(n for a in actions for n in a.reads), *kept, *range(
            len(call_plan.graph.inputs))):
        uses[number] += 1
    return StepProgram(
        actions, [call_plan.runners[a.device] for a in actions],
        [len(a.after) for a in actions], followers, positions_of(call_plan), uses,
        [TaskRun(a, call_plan.graph.name) if a.kind == "task" else None for a in actions],
        partial(_position_of, call_plan),
        {name: knowing(arrays, spec) for name, arrays in call_plan.memories.items()})


def positions_of(call_plan: PlanOverDevices) -> list[int]:
    """Where the first node is that each action computes, or that waits for it."""
    positions = [a.position if a.kind == "task" else FAR for a in call_plan.actions]
    before = _before(call_plan)
    waiting = [0] * len(before)
    for number in (n for each in before for n in each):
        waiting[number] += 1
    ready = [number for number, count in enumerate(waiting) if not count]
    while ready:
        last = ready.pop()
        for number in before[last]:
            positions[number] = min(positions[number], positions[last])
            waiting[number] -= 1
            if not waiting[number]:
                ready.append(number)
    return positions


def _before(call_plan: PlanOverDevices) -> list[set[int]]:
    """The predecessors of each action; a receive also for the send of its value."""
    sends = {(a.node.attrs["key"], str(a.device), a.node.attrs["target"]): a.number
             for a in call_plan.actions if a.kind == "send" and a.node is not None}
    found = [sends.get((a.node.attrs["key"], a.node.attrs["source"], str(a.device)))
             if a.kind == "recv" and a.node is not None else None for a in call_plan.actions]
    return [a.after if send is None else {*a.after, send}  # None: another process sends it
            for a, send in zip(call_plan.actions, found, strict=True)]


def _position_of(call_plan: PlanOverDevices, error: BaseException, number: int) -> int:
    """Where in the program's order an action has failed."""
    node = _whole_node(call_plan, error)
    return call_plan.actions[number].position if node is None else node.id


def _whole_node(call_plan: PlanOverDevices, error: BaseException) -> Node | None:
    """The node of the whole graph whose library call has failed."""
    node = error.node if isinstance(error, TaskError) else None
    return None if node is None else next(
        (n for n in call_plan.graph.nodes if n.name == node.name), None)


class PartitionedPlan(CallEndings):
    """One call at a time of a plan over several devices."""

    call_plan: PlanOverDevices

    def __init__(
        self, call_plan: PlanOverDevices, spec: CallSpec, program: StepProgram, frame: str = "",
    ) -> None:
        super().__init__(call_plan, spec)
        self.program, self.frame = program, frame
        self.iterations = itertools.count()
        is_repeated = call_plan.states is not None or any(map(may_fail, call_plan.graph.nodes))
        self.objects = host_objects(call_plan.graph) if is_repeated else None
        self.residents: Any = knowing(call_plan.residents, spec)  # `ResidentArrays`, or None
        self.variables = dict(spec.variables)
        is_alone = self.residents is not None and [a.kind for a in call_plan.actions] == ["task"]
        self.alone = is_alone and not call_plan.actions[0].is_on_caller
        self.last_step: Step | None = None
        self.open_shapes = [(i, v.shape) for i, v in enumerate(call_plan.graph.inputs)
                            if v.type.kind == "array" and not v.type.is_static]
        self.made_ms = 0.0

    def call(
        self, leaves: Sequence[Any], sizes: dict[str, int],
        times: list[tuple[str, float]] | None = None,
    ) -> list[Any]:
        """The result leaves."""
        if self.residents is None:
            return self._called(leaves, sizes, times)
        with self.residents.call():
            return [*map(self.residents.shown, self._called(leaves, sizes, times))]

    def _called(
        self, leaves: Sequence[Any], sizes: dict[str, int],
        times: list[tuple[str, float]] | None,
    ) -> list[Any]:
        if self.objects is not None:
            self.begin()
        captured = [c() if callable(c) else c for c in self.spec.captured]
        inputs = self._inputs(leaves, captured)
        self._bind(inputs, sizes)
        moved = self._moved(inputs)
        is_alone = self.alone and times is None and not timeline.on
        failure, values = self._run_alone(moved, sizes) if is_alone else (
            self._run_step(moved, sizes, times))
        if failure is not None:
            raise self._explained(failure.error, leaves, captured) from None
        self._write(values, inputs)
        outputs = [place if number is None else values[number] for place, number in zip(
            self.call_plan.outputs, self.call_plan.results, strict=True)]
        return self.results_of(outputs, leaves, captured, sizes)

    def _run_step(
        self, inputs: Sequence[Any], sizes: dict[str, int], times: Times | None
    ) -> tuple[Failure | None, list[Any]]:
        """The failure, and the step's values."""
        self.last_step = step = Step(self.program, inputs, sizes, self._frame(), times is not None)
        step.run()
        failure, values = step.failure, step.values
        step.close()
        if failure is None and times is not None and step.times is not None:
            times += [each for action in self.call_plan.tasks for each in step.times[action.number]]
        return failure, values

    def _run_alone(
        self, inputs: Sequence[Any], sizes: dict[str, int]
    ) -> tuple[Failure | None, list[Any]]:
        """The same where one task is all that there is: on this thread, which need not wait."""
        action = self.call_plan.actions[0]
        run = self.program.runs[0]
        assert run is not None
        values = [*inputs, *[None] * (len(self.program.uses) - len(inputs))]
        try:
            results = run([values[i] for i in action.reads], sizes, None)
        except Exception as error:
            return Failure(action.position, error), values
        for at, value in zip(action.writes, results, strict=True):
            values[at] = value
        return None, values

    def _moved(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Where the arguments are a device's, values read from outside are brought there."""
        first = self.spec.first_captured
        if self.residents is None:
            return inputs
        return [*inputs[:first], *(self._brought(number, x) if isinstance(x, np.ndarray) else x
                                   for number, x in enumerate(inputs[first:], first))]

    def _brought(self, number: int, array: np.ndarray) -> Any:
        """An array from outside, there: kernels are made for the strides that it has."""
        if array.size and not self.spec.is_packed(number):
            return self.residents.bring_as_it_lies(array)
        return self.residents.bring(array)

    def _on_host(self, leaf: Any) -> Any:
        """An argument as NumPy's, for the program to be repeated."""
        is_there = self.residents is not None and isinstance(leaf, np.ndarray)
        return self.residents.fetch(leaf) if is_there and self.residents is not None else leaf

    def _frame(self) -> str:
        """The loop or branch that this is a run of, and which one."""
        return f"{self.frame}:{next(self.iterations)}" if self.frame else ""

    def _bind(self, inputs: Sequence[Any], sizes: dict[str, int]) -> None:
        for position, shape in self.open_shapes:
            bind(shape, inputs[position].shape, sizes)

    def _explained(
        self, error: BaseException, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> BaseException:
        """The error that the program raises by itself."""
        if not isinstance(error, TaskError):
            return error
        for _, occupancy in self.spec.variables:  # what is repeated reads and writes them here
            occupancy.come_home()
            occupancy.copies.clear()
        if self.residents is None:
            return self._repeated_error(error, leaves, captured)
        here = [*map(self._on_host, leaves)]
        explained = self._repeated_error(error, here, captured)
        for spec, leaf, seen in zip(self.spec.leaves, leaves, here, strict=True):
            if spec.input in self.spec.updates:  # what the program had written by then
                self.residents.write(leaf, self.residents.bring(seen))
        return explained

    def _repeated_error(
        self, error: TaskError, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> BaseException:
        node = _whole_node(self.call_plan, error)
        if error.error is None or node is None:
            find: Callable[..., Any] = check_error
            explained: BaseException = self.repeated(find, leaves, captured)
            return explained
        return self.failure(error.error, node, leaves, captured)

    def _write(self, values: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Make the program's assignments to arguments and Variables."""
        written = [(inputs[i], values[number]) for i, number in self.call_plan.writes]
        for at, (_, value) in enumerate(written):
            if any(np.may_share_memory(value, array) for array, _ in written):
                written[at] = written[at][0], self._copied(value)
        first = self.spec.first_captured
        for (i, _), (array, value) in zip(self.call_plan.writes, written, strict=True):
            if self.residents is None:
                if i in self.variables:
                    self.variables[i].copies.clear()  # some may be of this call
                np.copyto(array, value)
            elif i < first:
                self.residents.write(array, value)
            elif i in self.variables:
                self.residents.assign(array, self._own(value, values))
            else:  # from outside
                np.copyto(array, self.residents.fetch(value))

    def _own(self, value: Any, values: Sequence[Any]) -> Any:
        """The array that a Variable is to keep: a copy of one that is a result or input, too."""
        known = [values[n] for n in self.call_plan.results if n is not None]
        known += values[: len(self.spec.input_types)]
        shared = any(isinstance(x, np.ndarray) and np.may_share_memory(x, value) for x in known)
        return self._copied(value) if shared else value

    def _copied(self, value: np.ndarray) -> np.ndarray:
        if self.residents is None:
            return value.copy()
        made: np.ndarray = self.residents.empty(value.shape, value.dtype, "C")
        self.residents.write(made, value)
        return made
