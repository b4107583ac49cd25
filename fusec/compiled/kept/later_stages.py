"""Passes, fused graph and plan of a function whose plan was kept: made when somebody reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, overload

from fusec.codegen import backends
from fusec.codegen.plan.call_plan import CallPlan
from fusec.core.process import stack
from fusec.core.records import replace
from fusec.ir import Graph
from fusec.ir.later_graphs import LaterGraph
from fusec.ir.lazy_values import lazy
from fusec.ir.types import TensorType
from fusec.passes.pipeline import PassRecord, run_pipeline

from ..stages import OptimizedStage, TracedStage


class LaterStages:
    """What follows a traced stage on one device, the CPU."""

    def __init__(self, stage: TracedStage) -> None:
        self.stage = replace(stage, call=replace(stage.call, leaves=()))
        self.graph, self.passes = FusedGraph(self), LaterPasses(self)

    @lazy
    def optimized(self) -> OptimizedStage:
        start, records = time.perf_counter(), list[PassRecord]()
        with stack.deeper():
            fused = run_pipeline(self.stage.graph.made, self.stage.options, records)
        return OptimizedStage(self.stage, fused, records, 1e3 * (time.perf_counter() - start))

    @lazy
    def plan(self) -> CallPlan:
        """Compiled; its machine code is in the caches."""
        with backends.using("cpu"), stack.deeper():
            return self.optimized.compiled_plan()


class FusedGraph(LaterGraph):
    """The graph after the passes."""

    _stages: LaterStages

    def __init__(self, stages: LaterStages) -> None:
        self.__dict__.update(name=stages.stage.graph.name, _stages=stages, _index={})

    @property
    def made(self) -> Graph:
        return self._stages.optimized.graph

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return self._stages.stage.graph.input_types

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return self._stages.stage.graph.output_types

    @property
    def updated(self) -> tuple[int, ...]:
        return self._stages.stage.graph.updated


class LaterPasses(Sequence[PassRecord]):
    """The pass log."""

    def __init__(self, stages: LaterStages) -> None:
        self._stages = stages

    @property
    def _records(self) -> list[PassRecord]:
        return self._stages.optimized.passes

    @overload
    def __getitem__(self, index: int) -> PassRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PassRecord]: ...

    def __getitem__(self, index: Any) -> Any:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[PassRecord]:
        return iter(self._records)

    def __repr__(self) -> str:
        return repr(self._records)
