"""Tasks of a partitioned plan, compiled and ready to run on values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.plan.plan_over_devices import Action
from fusec.core import timeline
from fusec.core.records import replace
from fusec.ir import Node
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.dims import symbols_of
from fusec.runtime.call_endings import Find
from fusec.runtime.call_spec import spec_of
from fusec.runtime.executor import Executable

from ..launching.cells import idle_or_new
from ..plan.step_by_step import StepByStep
from ..plan.step_spans import StepNote, StepSpans, notes_of


class TaskError(Exception):
    """A task has failed: at ``node``, a library call, with ``error``; or in a check, which only a
    repetition of the whole program explains."""

    def __init__(self, error: Exception | None = None, node: Node | None = None) -> None:
        super().__init__(error)
        self.error, self.node = error, node


class _TaskPlan(StepByStep):
    """The steps of a task.  Its errors are explained by the plan that it is a part of."""

    @staticmethod
    def of_graph(call_plan: CallPlan) -> Any:
        """A task on a device's arrays cannot be repeated by itself either."""
        if call_plan.arrays is not None:
            return _InnerPlan(call_plan, spec_of(call_plan.graph))
        return StepByStep.of_graph(call_plan)

    def failure(
        self, error: Exception, node: Node, leaves: Sequence[Any], captured: Sequence[Any],
        changed: Sequence[np.ndarray] = (),
    ) -> Exception:
        return error if isinstance(error, TaskError) else TaskError(error, node)

    def repeated(
        self, find: Find, leaves: Sequence[Any], captured: Sequence[Any],
    ) -> Any:
        return TaskError()


class _InnerPlan(_TaskPlan):
    """The steps of a branch or loop in a task, whose nodes the whole graph has not."""

    def failure(
        self, error: Exception, node: Node, leaves: Sequence[Any], captured: Sequence[Any],
        changed: Sequence[np.ndarray] = (),
    ) -> Exception:
        return TaskError()


class _NativeTask(Executable):
    """A task of kernels whose sizes are known: one native call."""

    def _new_instance(self, one_by_one: bool = False) -> StepByStep:
        return _TaskPlan(self.call_plan, self.spec, one_by_one)


class TaskRun:
    """A task as a function of the values that it reads; ``sizes`` are those of the step."""

    def __init__(self, action: Action, name: str) -> None:
        """``name``: of the function that it is a task of, for warnings of its callees."""
        assert action.call_plan is not None
        self.call_plan = call_plan = action.call_plan
        graph = call_plan.graph
        self.spec = replace(
            spec_of(graph), name=name, input_strides=tuple(action.layouts))
        has_symbols = any(symbols_of(v.type) for n in graph.nodes for v in n.outputs)
        is_native = call_plan.backend.is_native and not call_plan.externs and not has_symbols
        self._native = _NativeTask(call_plan, self.spec) if is_native else None
        self._idle: list[_TaskPlan] = []
        self._one_by_one: list[_TaskPlan] = []  # those whose steps are timed

    def __call__(
        self, operands: Sequence[Any], sizes: dict[str, int],
        times: list[tuple[str, float]] | None = None,
    ) -> Sequence[Any]:
        """Its results; with ``times``, kernels run one by one and those of steps are added."""
        if times is not None:
            return self._run_timed(operands, sizes, times)
        if self._native is not None:
            return self._native.run_unchecked(operands)
        if timeline.on:
            return self._run_timed(operands, sizes, StepSpans(self._notes))
        instance = idle_or_new(self._idle, lambda: _TaskPlan(self.call_plan, self.spec))
        try:
            return instance.call(operands, sizes)
        finally:
            self._idle.append(instance)

    def _run_timed(
        self, operands: Sequence[Any], sizes: dict[str, int], times: list[tuple[str, float]],
    ) -> Sequence[Any]:
        """The same, each kernel by itself."""
        instance = idle_or_new(
            self._one_by_one, lambda: _TaskPlan(self.call_plan, self.spec, one_by_one=True))
        try:
            return instance.call(operands, sizes, times)
        finally:
            self._one_by_one.append(instance)

    @lazy
    def _notes(self) -> list[StepNote]:
        return notes_of(self.call_plan)
