"""Running a plan step by step from Python: kernels in native segments, libraries between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fusec.codegen.schedule import ExternStep, KernelStep, Place, Schedule
from fusec.ops.host_calls import host_objects

from .call_endings import CallEndings
from .call_spec import CallSpec, cells_of, spec_of
from .cells import Cells
from .open_segments import OpenSegment
from .plan_source import PlanSource
from .segments import CalledSegment, Segment, SizedSegment


class StepByStep(CallEndings):
    """Blocks and cells for one call at a time, and the function that runs the steps on them."""

    def __init__(self, schedule: Schedule, spec: CallSpec, one_by_one: bool = False) -> None:
        start = time.perf_counter()
        super().__init__(schedule, spec)
        self.cells = Cells(schedule.cells)
        self.scalars = cells_of(spec.input_types)
        groups = [[s] for s in schedule.steps] if one_by_one else _segments(schedule.steps)
        self.segments = [self._segment(s) for s in groups]
        self.names = [group[0].name for group in groups]
        self.fresh = self._fresh()
        is_repeated = schedule.may_fail or schedule.states is not None
        self.objects = host_objects(schedule.pattern) if is_repeated else None
        self.source = PlanSource(self, timed=one_by_one)
        self.call = self.source.function()
        self._made_ms = 1e3 * (time.perf_counter() - start)

    @staticmethod
    def of_graph(schedule: Schedule) -> Any:
        """The plan of a sub-graph, whose inputs are its leaves."""
        if schedule.executable is not None:
            return schedule.executable.of_graph(schedule)
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
        kind: Any = Segment if all(step.is_static for step in steps) else SizedSegment
        if kind is Segment and all(step.pattern is not None for step in steps):
            kind = OpenSegment
        return kind(steps, self.cells.words, self.schedule.backend)

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
        node = self.source.node_at(error.__traceback__.tb_lineno)
        return None if node is None else self.failure(error, node, leaves, captured)


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
