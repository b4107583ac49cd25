"""The stages of compilation as objects: trace, optimise, lower, compile; each prints itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fusec import config
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.plan.plan_building import compile_plan
from fusec.core import timeline
from fusec.core.records import dataclass, field, replace
from fusec.ir import Graph
from fusec.ir.lazy_values import lazy
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import PassRecord
from fusec.placement.placers import optimized, plan_of
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.tracer import Traced

from .compiled_steps import CompiledExtern, CompiledKernel, library_steps
from .compiled_trace import Build
from .concrete_function import ConcreteFunction
from .reports.passes_report import passes_text
from .reports.viewed import Viewed

if TYPE_CHECKING:
    from fusec.placement.placed_graph import Placed  # loaded where graphs are placed, which few are


@dataclass
class TracedStage(Viewed):
    """The graph as traced."""

    name: str
    call: FlatCall
    traced: Traced
    options: PassOptions

    @property
    def graph(self) -> Graph:
        return self.traced.graph

    def as_text(self) -> str:
        """The graph in its text form."""
        return str(self.graph)

    __str__ = as_text

    def optimize(self) -> OptimizedStage:
        """Run the passes, fusion last."""
        start = time.perf_counter()
        records: list[PassRecord] = []
        placing = self.call.placing
        fused, placed = optimized(self.graph.made, self.options, records,
                                  "" if placing is None else placing.residence)
        if timeline.on:
            timeline.since("passes", f"passes of {self.name}", start)
        return OptimizedStage(
            self, fused, records, 1e3 * (time.perf_counter() - start), placed=placed)


@dataclass
class OptimizedStage(Viewed):
    """The graph after the passes; ``passes`` is the pass log."""

    before: TracedStage
    graph: Graph
    passes: list[PassRecord]
    ms: float
    planned: Planner | None = None  # what knows plans of this graph at other sizes
    placed: Placed | None = None  # which device does what, where there are several

    def as_text(self) -> str:
        """Every pass with its time, rewrites and diff, then the result."""
        return f"{passes_text(self.passes)}\n{self.graph}"

    __str__ = as_text

    def lower(self) -> LoweredStage:
        """Lower every fusion group to loop IR and decide where values live."""
        start, stats = time.perf_counter(), CompileStats()
        call_plan = None if self.planned is None else self.planned(self.without_arguments(), stats)
        if call_plan is None:
            call_plan = self.call_plan()
        self._hand_on(call_plan)
        if timeline.on:
            timeline.since("codegen", f"lowering of {self.before.name}", start)
        return LoweredStage(self, call_plan, 1e3 * (time.perf_counter() - start), stats)

    def call_plan(self) -> CallPlan:
        """The plan of the graph itself."""
        traced = self.before.traced
        return plan_of(self.graph.made, self.placed, traced.input_strides,
                         traced.output_strides, traced.graph)

    def _hand_on(self, call_plan: CallPlan) -> None:
        """Give a plan what its calls tell the user from."""
        call_plan.states, call_plan.passes = self.before.traced.states or None, self.passes

    def without_arguments(self) -> OptimizedStage:
        """The same for records that outlive the call, whose arrays are not ours to keep."""
        stage = self.before
        return replace(self, before=replace(stage, call=replace(stage.call, leaves=())))

    def placed_anew(self, placed: Placed) -> CallPlan:
        """The compiled plan of another placement."""
        return replace(self, placed=placed).compiled_plan()

    def compiled_plan(self) -> CallPlan:
        """The plan by itself, compiled."""
        call_plan = self.call_plan()
        self._hand_on(call_plan)
        compile_plan(call_plan, CompileStats())
        return call_plan


@dataclass
class LoweredStage(Viewed):
    """Kernels in loop IR and library calls, in order."""

    before: OptimizedStage
    call_plan: CallPlan
    ms: float
    stats: CompileStats = field(default_factory=CompileStats)

    @lazy
    def kernels(self) -> list[CompiledKernel]:
        """The kernels, with ``.loops``, ``.source``, ``.lines`` and bytes; no machine code yet."""
        return [CompiledKernel(s) for s in self.call_plan.kernels]

    @lazy
    def externs(self) -> list[CompiledExtern]:
        """The library calls between them."""
        return library_steps(self.call_plan)

    def as_text(self) -> str:
        """Every kernel's loop nests."""
        return "\n\n".join(k.loops for k in self.kernels)

    __str__ = as_text

    def compile(self) -> ConcreteFunction:
        """Generate machine code for nests not yet known to this process."""
        stats, start = self.stats, time.perf_counter()
        compile_plan(self.call_plan, stats)
        if timeline.on:
            timeline.since("codegen", f"code of {self.before.before.name}", start)
        total, compilers = 1e3 * (time.perf_counter() - start), stats.others_ms
        optimized, traced = self.before, self.before.before
        times = {
            "trace": traced.traced.ms, "passes": optimized.ms,
            "codegen": self.ms + total - stats.llvm_ms - sum(compilers.values()),
            "llvm": stats.llvm_ms, **compilers,
        }
        concrete = ConcreteFunction(Build(
            traced.name, traced.call, traced.traced, optimized.graph, optimized.graph,
            optimized.passes, self.call_plan, stats, times, optimized.placed,
        ))
        if optimized.placed is not None:
            concrete.trial = optimized.placed.trial(optimized.without_arguments().placed_anew)
        return concrete


Planner = Callable[[OptimizedStage, CompileStats], CallPlan | None]


def pass_options(fp: str, check_indices: bool) -> PassOptions:
    """Options of the pipeline from those of ``jit`` and the configuration."""
    return PassOptions(fp=fp, verify=config.verify,  # type: ignore[arg-type]
                       check_indices=check_indices)
