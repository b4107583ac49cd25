"""The stages that a page is made of, whichever of them there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.codegen.plan.call_plan import CallPlan
from fusec.compiled.compiled_steps import CompiledControl, CompiledExtern, CompiledKernel
from fusec.compiled.compiled_steps import control_steps as controls_of
from fusec.compiled.compiled_trace import CompiledTrace
from fusec.compiled.reports.passes_report import PassRun
from fusec.compiled.stages import LoweredStage, OptimizedStage, TracedStage
from fusec.core.records import dataclass
from fusec.ir import Graph


@dataclass
class Subject:
    """One trace as far as it was compiled: what a stage has not made yet is empty.

    ``stage`` names the last stage, ``text`` is that stage's own report.
    """

    stage: str
    name: str
    signature: str
    reason: str
    text: str
    traced: Graph
    optimized: Graph | None = None
    passes: Sequence[PassRun] = ()
    kernels: Sequence[CompiledKernel] = ()
    externs: Sequence[CompiledExtern] = ()
    control: Sequence[CompiledControl] = ()
    call_plan: CallPlan | None = None
    trace: CompiledTrace | None = None

    @property
    def is_compiled(self) -> bool:
        return self.trace is not None

    @property
    def graph(self) -> Graph:
        """The last graph."""
        return self.traced if self.optimized is None else self.optimized


def subject_of(stage: Any) -> Subject:
    """The subject of a stage or a compiled function."""
    if isinstance(stage, TracedStage):
        return _traced(stage)
    if isinstance(stage, OptimizedStage):
        return _optimized(stage)
    return _lowered(stage) if isinstance(stage, LoweredStage) else _compiled(stage)


def _traced(stage: TracedStage) -> Subject:
    return Subject("traced", stage.name, stage.name, "", stage.as_text(), stage.graph.made)


def _optimized(stage: OptimizedStage) -> Subject:
    subject = _traced(stage.before)
    subject.stage, subject.text = "optimized", stage.as_text()
    subject.optimized, subject.passes = stage.graph.made, stage.passes
    return subject


def _lowered(stage: LoweredStage) -> Subject:
    subject = _optimized(stage.before)
    subject.stage, subject.text = "lowered", stage.as_text()
    subject.kernels, subject.externs = stage.kernels, stage.externs
    subject.control, subject.call_plan = controls_of(stage.call_plan), stage.call_plan
    return subject


def _compiled(trace: CompiledTrace) -> Subject:
    return Subject(
        "compiled", trace.name, trace.signature, trace.reason, trace.as_text(), trace.graph.made,
        trace.optimized_graph.made, trace.passes, trace.kernels, trace.externs, trace.control,
        trace.build.call_plan, trace)
