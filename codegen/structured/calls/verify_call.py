"""Checks that the plan of a call means something, and leaves arguments alone.

Beyond what holds for every program: memory is read after something was written there, arguments are
written only where the graph updates them, and after that no check fails any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fusec.core.records import dataclass, field
from fusec.ir import Graph
from fusec.ir.sizes.dims import symbols_of
from fusec.ops.rows.sizes import told_symbols

from ..kernel_statements import RunKernel
from ..memory import Memory, View
from ..verify import RULES, Rule, StructureError, Things, Verifier
from .call_statements import NodeCall, Return

if TYPE_CHECKING:
    from ...plan.call_plan import CallPlan


def verify_call(plan: CallPlan) -> None:
    """Raise `StructureError`, with the statement, where a rule is broken."""
    verifier = _CallVerifier(0, 0, rules=RULES | _OF_CALLS, graph=plan.graph)
    shapes = tuple(v.shape for v in plan.graph.inputs)
    told = told_symbols(plan.graph) if plan.traced is None else frozenset()  # to a device's task
    verifier.block(plan.body, {*symbols_of(shapes), *told})


@dataclass
class _CallVerifier(Verifier):
    """``written``: memory that something is in; ``changed``: an argument has been written."""

    graph: Graph | None = None
    written: set[Memory] = field(default_factory=set)
    changed: bool = False

    def holds_something(self, places: Iterable[Any]) -> None:
        for place in places:
            if isinstance(place, View) and place.memory.origin in ("temp", "target"):
                self.require(place.memory in self.written, f"{place.memory!r} holds nothing yet")

    def may_fail(self, may: bool) -> None:
        self.require(not (may and self.changed), "a check after an argument was written")

    def write(self, places: Iterable[View], saved: Iterable[View] = ()) -> None:
        updated = {index for index, _ in self.graph.updates} if self.graph is not None else set()
        for place in places:
            memory = place.memory
            self.written.add(memory)
            if memory.origin == "operand":
                self.require(memory.position in updated, "an argument that nothing updates")
                self.changed |= place not in saved


def _run_kernel(v: Any, x: RunKernel, known: Things) -> None:
    v.read(known, *x.operands, *x.results)
    v.require(len(x.places) == len(x.kernel.buffers), "a kernel has other buffers")
    v.holds_something(x.operands)
    v.may_fail(x.kernel.has_checks)
    written = [r.memory for r in x.results if isinstance(r, View)]
    v.require(len(set(written)) == len(written), "two results of a kernel in one memory")
    v.write(x.results)


def _node_call(v: Any, x: NodeCall, known: Things) -> None:
    v.read(known, *(o for o in x.operands if isinstance(o, View)))
    v.holds_something(x.operands)
    known |= symbols_of(tuple(place.shape for place in x.results))  # the call tells its sizes
    v.read(known, *x.results)
    v.write(x.results, x.saved)


def _return(v: Any, x: Return, known: Things) -> None:
    v.read(known, *(r for r in x.results if isinstance(r, View)))
    v.holds_something(x.results)


_OF_CALLS: dict[type, Rule] = {
    RunKernel: _run_kernel, NodeCall: _node_call, Return: _return}

__all__ = ["StructureError", "verify_call"]
