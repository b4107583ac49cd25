"""A plan of an earlier process: one native call, and its statements when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.ir import Graph
from fusec.ir.lazy_values import lazy

from ..backend import Backend
from ..plan.call_plan import CallPlan, NativeParts, Traffic
from ..structured.calls.call_statements import CallStatement, NodeCall
from ..structured.memory import View
from .plan_form import Form, PlanParts


class KeptPlan(CallPlan):
    """``native`` is of an earlier process; all else is of ``whole``, the same plan made from its
    graph: by reports, profiles, a call that fails, and one that comes while another thread is in
    this one."""

    def __init__(
        self, form: Form, backend: Backend, graph: Graph, traced: Graph,
        whole: Callable[[], CallPlan],
    ) -> None:
        self._parts, self._whole = PlanParts(form, backend), whole
        self.graph, self.traced, self.backend = graph, traced, backend

    @property
    def native(self) -> NativeParts:
        return self._parts

    @lazy
    def whole(self) -> CallPlan:
        return self._whole()

    @property
    def steps(self) -> list[CallStatement]:  # type: ignore[override]
        return self.whole.steps

    @property
    def head(self) -> list[Any]:  # type: ignore[override]
        return self.whole.head

    @property
    def temps(self) -> list[View]:  # type: ignore[override]
        return self.whole.temps

    @property
    def cells(self) -> int:  # type: ignore[override]
        return self.whole.cells

    @property
    def outputs(self) -> list[Any]:  # type: ignore[override]
        return self.whole.outputs

    @property
    def externs(self) -> list[NodeCall]:
        return []

    @property
    def may_fail(self) -> bool:
        return self._parts.may_fail

    @property
    def traffic(self) -> Traffic:
        return self._parts.traffic
