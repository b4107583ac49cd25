"""How a branch or loop of a call runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node
from fusec.ir.lazy_values import lazy
from fusec.ops.calls.subgraph_ops import has_placed_parts
from fusec.passes.pipeline import BodyPasses, Pass, PassRecord, run_passes

from ..backend import Strides
from .control_program import ControlCode, ControlProgram

if TYPE_CHECKING:
    from ..machine_code.llvm import NativeCode


class BodyPlan:
    """A sub-graph as a plan of its own, made and compiled when it is first needed."""

    def __init__(
        self, graph: Graph, passes: Sequence[Pass],
        make: Callable[[Graph, Sequence[Pass]], Any],
    ) -> None:
        self.graph, self._passes, self._make = graph, passes, make

    @lazy
    def call_plan(self) -> Any:
        return self._make(self.graph, self._passes)

    @property
    def passes(self) -> BodyPasses:
        """What the sub-graph goes through, which nothing keeps."""
        log: list[PassRecord] = []
        run_passes(self._passes, self.graph, log=log)
        return BodyPasses(self.graph.name, log)


@dataclass
class ControlRun:
    """How a branch or loop runs: as one native function, or step by step, with the reason.

    ``strides`` are those of its operands; ``reused`` are results that are an operand's own memory.
    """

    node: Node
    strides: list[Strides]
    reused: Collection[int]
    program: ControlProgram | ControlCode | None = None
    reason: str = ""  # why it is not native
    # Of its sub-graphs by attr, where it may run step by step.
    plans: dict[str, BodyPlan] = field(default_factory=dict)

    @property
    def pattern(self) -> ControlRun:
        """The run whose code this one is: itself, or the one of all sizes."""
        return self

    @property
    def is_native(self) -> bool:
        return self.program is not None

    @property
    def may_outgrow(self) -> bool:
        """Whether it may turn out to have no room for a result: it runs again then, from Python."""
        return isinstance(self.program, ControlProgram) and self.program.may_outgrow

    @property
    def is_divisible(self) -> bool:
        """Whether it is a loop over lanes, ranges of which run at the same time."""
        return isinstance(self.program, ControlProgram) and self.program.is_divisible

    @property
    def lanes(self) -> str:
        """How loops over lanes run, in words; "" where there are none."""
        return self.program.lanes if isinstance(self.program, ControlProgram) else ""

    @property
    def is_divided(self) -> bool:
        """Whether what is in it has to run on several devices."""
        return has_placed_parts(self.node)

    @property
    def nests(self) -> int:
        """How many nests of fused loops the native function calls."""
        return len(self.program.nests) if self.program is not None else 0

    @property
    def calls(self) -> list[str]:
        """What of Python's the native function calls, as far as its runs show, with reasons."""
        calls = self.program.python_calls if isinstance(self.program, ControlProgram) else {}
        return [f"{name} ({why})" if why else name for name, why in calls.items()]

    @property
    def passes(self) -> Sequence[BodyPasses]:
        """What its sub-graphs went through when it was lowered."""
        if self.program is not None:
            return self.program.structured().passes
        return [plan.passes for plan in self.plans.values()]

    @property
    def code(self) -> NativeCode | None:
        return self.program.code if isinstance(self.program, ControlProgram) else None
