"""Running a plan step by step from Python: kernels in native segments, libraries between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.ops.calls.host_calls import host_objects

from ..call_endings import CallEndings
from ..call_spec import CallSpec, spec_of
from ..launching.cells import Cells
from .plan_source import source_of
from .segments import CalledSegment, Segment, SizedSegment, runs_of
from .segments_at_sizes import OpenSegment


class StepByStep(CallEndings):
    """Blocks and cells for one call at a time, and the function that runs the steps on them."""

    def __init__(self, call_plan: CallPlan, spec: CallSpec, one_by_one: bool = False) -> None:
        start = time.perf_counter()
        super().__init__(call_plan, spec)
        self.cells = Cells(call_plan.cells)
        self.segments = [self._segment(s) for s in (
            [[s] for s in call_plan.steps] if one_by_one else runs_of(call_plan.steps))]
        is_repeated = call_plan.may_fail or call_plan.states is not None
        self.objects = host_objects(call_plan.pattern) if is_repeated else None
        self.source = source_of(self, timed=one_by_one)
        self.call = self.source.function(self)
        self._made_ms = 1e3 * (time.perf_counter() - start)

    @staticmethod
    def of_graph(call_plan: CallPlan) -> Any:
        """The plan of a sub-graph, whose inputs are its leaves."""
        if call_plan.executable is not None:
            return call_plan.executable.of_graph(call_plan)
        return StepByStep(call_plan, spec_of(call_plan.graph))

    def _segment(self, steps: list[Any]) -> Segment | SizedSegment | NodeCall:
        if isinstance(steps[0], NodeCall):
            return steps[0]
        if not self.call_plan.backend.is_native:
            return CalledSegment(steps, self.cells)
        kind: Any = Segment if all(step.is_static for step in steps) else SizedSegment
        if kind is Segment and all(step.pattern is not None for step in steps):
            kind = OpenSegment
        return kind(steps, self.cells.words, self.call_plan.backend)

    @property
    def needs_context(self) -> bool:
        return self.source.needs_context

    @property
    def made_ms(self) -> float:
        """Milliseconds that it took to make it, with what its first call had to make."""
        return self._made_ms + sum(s.made_ms for s in self.segments if isinstance(s, Segment))

    # -- what the text of the plan leaves to us

    def failure_at(
        self, error: Exception, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> Exception | None:
        """What to raise for an exception in the compiled text; None: the exception itself."""
        assert error.__traceback__ is not None
        number = self.source.call_at(error.__traceback__.tb_lineno)
        step = None if number is None else self.segments[number]
        if not isinstance(step, NodeCall):
            return None
        inputs = self._inputs(leaves, captured)
        changed = [inputs[step.results[number].memory.position]
                   for number in (() if step.run is None else step.run.reused)
                   if step.results[number].memory.origin == "operand"]
        return self.failure(error, step.node, leaves, captured, changed)
