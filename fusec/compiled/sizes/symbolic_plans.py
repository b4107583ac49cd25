"""Plans of a graph of symbolic sizes: lowered once, then substituted for each call's sizes."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.codegen import backends
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.codegen.plan.call_plan import CallPlan, Strides
from fusec.codegen.plan.call_plan_at_sizes import CallPlanAtSizes, is_open
from fusec.codegen.plan.plan_building import compile_plan, make_plan
from fusec.core.records import dataclass
from fusec.ir import Graph
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.size_questions import Question
from fusec.ir.sizes.symbolic_numbers import Sizes

from ..stages import OptimizedStage

MOST_SCHEDULES = 8  # of one graph; calls of further sizes are lowered by themselves
_TOO_MANY = f"{MOST_SCHEDULES} ways to order its loops are known"


@dataclass(frozen=True)
class _Lowered:
    """A plan with symbols, for sizes of which these questions have these answers."""

    questions: dict[Question, str]
    call_plan: CallPlan


class OpenPlans:
    """Those of one optimised graph."""

    def __init__(
        self, graph: Graph, input_strides: Sequence[Strides], output_strides: Sequence[Strides]
    ) -> None:
        self._graph, self._strides = graph, (input_strides, output_strides)
        self._lowered: list[_Lowered] = []
        self.refusal = ""  # why each combination of sizes is lowered by itself

    def at_sizes(
        self, instantiation: Instantiation, stage: OptimizedStage, stats: CompileStats
    ) -> CallPlan | None:
        """The plan of this stage, of these sizes; None where it has to be made from its graph.
        """
        if not backends.current().is_native:
            return None
        lowered = self._find(instantiation)
        if lowered is None and not self.refusal and len(self._lowered) < MOST_SCHEDULES:
            lowered = self._made(instantiation, stats)
        traced = stage.before.traced
        if lowered is None:
            traced.notes = [*traced.notes, f"lowered for each size: {self.refusal or _TOO_MANY}"]
            return None
        return CallPlanAtSizes(
            lowered.call_plan, instantiation, stage.graph, traced.graph, stage.call_plan)

    def _find(self, instantiation: Instantiation) -> _Lowered | None:
        backend = backends.current()
        for lowered in self._lowered:
            if lowered.call_plan.backend is backend and all(
                    question.holds(instantiation.sizes) for question in lowered.questions):
                return lowered
        return None

    def _made(self, instantiation: Instantiation, stats: CompileStats) -> _Lowered | None:
        try:
            lowered = self._lower(Sizes.of(instantiation.sizes), stats)
        except Exception as error:  # lowering the graph of these sizes says it, if it is an error
            self.refusal = f"{type(error).__name__}: {error}"
            return None
        constants = set().union(
            *(question.decides(instantiation.sizes) for question in lowered.questions))
        if not is_open(lowered.call_plan):
            self.refusal = "it has branches or loops that run step by step"
        elif constants >= set(instantiation.sizes):
            self.refusal = f"its kernels depend on {', '.join(sorted(constants))}"
        else:
            self._lowered.append(lowered)
            return lowered
        return None

    def _lower(self, sizes: Sizes, stats: CompileStats) -> _Lowered:
        with sizes.asked_by_passes() as questions:
            instantiation = Instantiation(sizes.symbols())
            inputs, outputs = ([instantiation.data(row) for row in rows] for rows in self._strides)
            call_plan = make_plan(instantiation.graph(self._graph), inputs, outputs)
            compile_plan(call_plan, stats)
            if is_open(call_plan):
                call_plan.traffic  # noqa: B018
        return _Lowered(questions, call_plan)
