"""Plans of symbolic sizes at the sizes of a call: places and loop forms have their symbols
substituted, machine code is the same.

What lowering and specialisation asked of the symbols must have the same answers (see
`symbolic_numbers`), so the result is their result for the graph at these sizes.  Parts
that no call needs are made when somebody reads them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from fusec.ir import Graph, Node
from fusec.ir.lazy_values import asked_once, lazy
from fusec.ir.sizes.instantiate import Instantiation

from ..kernels.loop_ir import Kernel, Param
from ..machine_code.native_nest import CompileStats, NestBlock
from ..structured.calls.call_statements import NodeCall
from ..structured.kernel_statements import NestUse, RunKernel, uses_of
from ..structured.memory import ConstantView, Memory, ShownAs, View
from ..structured.statements import Declare
from .block_templates import OpenBlock, form_at, params_at
from .call_plan import AtItsSizes, CallPlan, Traffic
from .control_program import ControlProgram, StructuredText
from .control_runs import ControlRun
from .plan_building import compile_plan
from .programs_at_sizes import ProgramAtSizes, StepNodes


class Substitution(AtItsSizes):
    """The sizes of one plan, and what was made for them."""

    def __init__(self, to: Instantiation) -> None:
        self.to, self.nodes = to, StepNodes(to)
        self.data = to.data  # type: ignore[method-assign]
        self._places: dict[int, View] = {}
        self._memories: dict[Memory, Memory] = {}

    def memory(self, memory: Memory) -> Memory:
        """The same memory, of so many bytes."""
        nbytes = self.data(memory.nbytes)
        if nbytes is memory.nbytes:
            return memory
        return self._memories.setdefault(memory, Memory(
            memory.number, nbytes, memory.dtype, memory.origin, memory.position))

    def place(self, place: Any) -> Any:
        if not has_sizes(place):
            return place
        new = self._places.get(id(place))
        if new is None:
            data = self.data
            new = self._places[id(place)] = View(
                self.memory(place.memory), data(place.shape), data(place.strides), place.dtype,
                views=tuple(map(self.view, place.views)))
        return new

    def view(self, view: ShownAs) -> ShownAs:
        attrs = {name: self.data(value) for name, value in view.attrs.items()}
        is_same = all(value is view.attrs[name] for name, value in attrs.items())
        return view if is_same else ShownAs(view.reference, attrs, view.op)

    def source(self, source: Any) -> Any:
        if isinstance(source, View):
            return self.place(source)
        if isinstance(source, ConstantView):
            return source.at_sizes(self.data)
        return self.data(source)


@asked_once
def has_sizes(place: View) -> bool:
    """Whether sizes decide anything of it."""
    return not (_is_fixed(place.shape) and _is_fixed(place.strides) and all(
        _is_fixed(value) for view in place.views for value in view.attrs.values()))


def _is_fixed(data: Any) -> bool:
    kind = type(data)
    return kind in (int, str, bool, type(None)) or (kind is tuple and all(map(_is_fixed, data)))


class StepAtSizes(RunKernel):
    """``pattern`` at other sizes; its loop IR, which people read and no call needs, is lowered
    anew."""

    def __init__(
        self, pattern: RunKernel, at: Substitution, lowered: Callable[[], RunKernel]
    ) -> None:
        self._pattern, self.at = pattern, at
        self.code = pattern.code
        self._lowered = lowered

    @property
    def pattern(self) -> RunKernel:
        return self._pattern

    def filled(self, block: OpenBlock) -> NestBlock:
        return block.at_sizes(self.at.to)

    @lazy
    def operands(self) -> list[Any]:  # type: ignore[override]
        return list(map(self.at.place, self.pattern.operands))

    @lazy
    def results(self) -> list[Any]:  # type: ignore[override]
        return list(map(self.at.place, self.pattern.results))

    @lazy
    def not_empty(self) -> tuple[Any, ...]:
        return tuple(self.at.to.data(self.pattern.not_empty))

    @lazy
    def nests(self) -> list[NestUse]:  # type: ignore[override]
        forms = (form_at(self.at.to, form) for form in self.pattern.forms)
        return uses_of(forms, self.params)

    @property
    def is_static(self) -> bool:
        return self.pattern.is_static

    @property
    def name(self) -> str:
        return self.pattern.name

    @property
    def params(self) -> tuple[Param, ...]:
        return params_at(self.at.to, self.pattern.params)

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        return self._lowered().kernel

    @property
    def boundaries(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._lowered().boundaries


class CallAtSizes(NodeCall):
    """A library call, or a native branch or loop; its structured IR is made when it is read."""

    def __init__(
        self, pattern: NodeCall, at: Substitution, structured: Callable[[str], StructuredText]
    ) -> None:
        self.pattern, self.at, self._structured = pattern, at, structured

    @lazy
    def node(self) -> Node:
        return self.at.nodes.node(self.pattern.node)

    @property
    def name(self) -> str:
        return self.pattern.node.name

    @property
    def kinds(self) -> Node:
        return self.pattern.node

    @lazy
    def operands(self) -> list[Any]:  # type: ignore[override]
        return list(map(self.at.source, self.pattern.operands))

    @lazy
    def results(self) -> list[View]:  # type: ignore[override]
        return list(map(self.at.place, self.pattern.results))

    @property
    def saved(self) -> list[View]:  # type: ignore[override]
        return list(map(self.at.place, self.pattern.saved))

    @lazy
    def run(self) -> ControlRun | None:
        return None if self.pattern.run is None else RunAtSizes(self, self.pattern.run)


class RunAtSizes(ControlRun):
    """A native branch or loop."""

    def __init__(self, step: CallAtSizes, pattern: ControlRun) -> None:
        assert isinstance(pattern.program, ControlProgram)
        self._pattern = pattern
        self._step, self.reused, self.reason, self.plans = step, pattern.reused, "", {}
        self.strides = [step.at.to.data(row) for row in pattern.strides]
        self.program = ProgramAtSizes(
            pattern.program, step.at.to, step.at.nodes, partial(step._structured, step.name))

    @property
    def pattern(self) -> ControlRun:
        return self._pattern

    @property
    def node(self) -> Node:  # type: ignore[override]
        return self._step.node


class CallPlanAtSizes(CallPlan):
    """``of``, whose branches and loops are native, at other sizes."""

    def __init__(
        self, of: CallPlan, instantiation: Instantiation, graph: Graph, traced: Graph,
        lowered: Callable[[], CallPlan],
    ) -> None:
        self._of, self._found, self._lower = of, instantiation, lowered
        kernels, at = itertools.count(), Substitution(instantiation)
        self._at = at
        steps: list[Any] = [
            StepAtSizes(step, at, partial(self._lowered_step, next(kernels)))
            if isinstance(step, RunKernel) else CallAtSizes(step, at, self._structured)
            for step in of.steps]
        super().__init__(
            steps, list(map(at.place, of.temps)), of.cells, list(map(at.source, of.outputs)), graph,
            of.backend, traced)

    def declared(self) -> list[Any]:
        return [Declare(self._at.memory(x.thing)) if isinstance(x, Declare) and isinstance(
            x.thing, Memory) else x for x in self._of.head]

    @property
    def pattern(self) -> Graph:
        return self._of.graph

    @property
    def open(self) -> CallPlan:
        return self._of

    @property
    def at(self) -> AtItsSizes:
        return self._at

    def by_backend(self) -> list[CallPlan]:
        return []  # the pattern's code is its own

    @lazy
    def _lowered(self) -> CallPlan:
        return self._lower()

    def _lowered_step(self, number: int) -> RunKernel:
        return self._lowered.kernels[number]

    def _structured(self, name: str) -> StructuredText:
        """The statements of a branch or loop, by the name of its node."""
        compile_plan(self._lowered, CompileStats())
        program = next(step.run.program for step in self._lowered.externs
                       if step.run is not None and step.name == name)
        assert program is not None
        return program.structured()

    @lazy
    def traffic(self) -> Traffic:
        return Traffic(*map(self._found.data, self._of.traffic))


def is_open(call_plan: CallPlan) -> bool:
    """Whether it can be made for other sizes: branches and loops that run step by step, or may,
    have plans of their own sizes."""
    places = [*call_plan.temps, *(p for step in call_plan.kernels for p in step.places),
              *(x for x in call_plan.outputs if isinstance(x, View))]
    return call_plan.backend.is_native and all(
        step.run is None or (
            isinstance(step.run.program, ControlProgram) and not step.run.may_outgrow)
        for step in call_plan.externs) and all(place.is_static for place in places)
