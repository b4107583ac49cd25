"""Schedules of symbolic sizes at the sizes of a call: places and loop forms have their symbols
substituted, machine code is the same.

What lowering and specialisation asked of the symbols must have the same answers (see
`fusec.ir.symbolic_numbers`), so the result is what they make of the graph at these sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any

from fusec.ir import Graph, Node
from fusec.ir.instantiate import Instantiation
from fusec.ir.lazy_values import lazy

from .control_program import ControlProgram
from .loop_ir import Kernel, Param
from .native_nest import CompileStats
from .open_programs import StepNodes, form_at, params_at, program_at
from .plan_building import compile_schedule
from .schedule import (
    ConstantView,
    ControlRun,
    ExternStep,
    KernelStep,
    Place,
    Schedule,
    Traffic,
    View,
)


class StepAtSizes(KernelStep):
    """``of`` at other sizes; its loop IR, which people read and no call needs, is lowered anew."""

    def __init__(
        self, of: KernelStep, instantiation: Instantiation, lowered: Callable[[], KernelStep]
    ) -> None:
        self.places = [place_at(instantiation, place) for place in of.places]
        self.not_empty = instantiation.data(of.not_empty)
        self.forms = [form_at(instantiation, form) for form in of.forms]
        self.code = of.code
        self._name = of.name
        self._params = params_at(instantiation, of.params)
        self._lowered = lowered

    @property
    def name(self) -> str:
        return self._name

    @property
    def params(self) -> tuple[Param, ...]:
        return self._params

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        return self._lowered().kernel

    @property
    def boundaries(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._lowered().boundaries


class ScheduleAtSizes(Schedule):
    """``of``, whose branches and loops are native, at other sizes."""

    def __init__(
        self, of: Schedule, instantiation: Instantiation, graph: Graph, traced: Graph,
        lowered: Callable[[], Schedule],
    ) -> None:
        self._of, self._found, self._lower = of, instantiation, lowered
        kernels, nodes = itertools.count(), StepNodes(instantiation)
        steps: list[Any] = [
            StepAtSizes(step, instantiation, partial(self._lowered_step, next(kernels)))
            if isinstance(step, KernelStep) else extern_at(
                instantiation, step, nodes, self._structured)
            for step in of.steps]
        super().__init__(
            steps, [place_at(instantiation, place) for place in of.temps], of.cells,
            [source_at(instantiation, x) for x in of.outputs], graph, of.backend, traced)

    @property
    def pattern(self) -> Graph:
        return self._of.graph

    @lazy
    def _lowered(self) -> Schedule:
        return self._lower()

    def _lowered_step(self, number: int) -> KernelStep:
        return self._lowered.kernels[number]

    def _structured(self, name: str) -> str:
        """The text of a branch or loop, by the name of its node."""
        compile_schedule(self._lowered, CompileStats())
        program = next(step.run.program for step in self._lowered.externs
                       if step.run is not None and step.node.name == name)
        return "" if program is None else program.structured()

    @lazy
    def traffic(self) -> Traffic:
        return Traffic(*map(self._found.data, self._of.traffic))


def is_open(schedule: Schedule) -> bool:
    """Whether it can be made for other sizes: branches and loops that run step by step have plans
    of their own sizes."""
    places = [*schedule.temps, *(p for step in schedule.kernels for p in step.places),
              *(x for x in schedule.outputs if isinstance(x, Place))]
    return schedule.backend.is_native and all(
        step.run is None or isinstance(step.run.program, ControlProgram)
        for step in schedule.externs) and all(place.is_static for place in places)


def place_at(instantiation: Instantiation, place: Place) -> Place:
    shape = instantiation.data(place.shape)
    strides = instantiation.data(place.strides)
    views = tuple(view_at(instantiation, view) for view in place.views)
    if shape is place.shape and strides is place.strides and all(map(is_, views, place.views)):
        return place
    return replace(place, shape=shape, strides=strides, views=views)


def view_at(instantiation: Instantiation, view: View) -> View:
    attrs = {name: instantiation.data(value) for name, value in view.attrs.items()}
    is_same = all(value is view.attrs[name] for name, value in attrs.items())
    return view if is_same else View(view.reference, attrs)


def source_at(instantiation: Instantiation, source: Any) -> Any:
    """A place or a constant."""
    if isinstance(source, Place):
        return place_at(instantiation, source)
    if isinstance(source, ConstantView):
        return source.at_sizes(instantiation.data)
    return instantiation.data(source)


def extern_at(
    instantiation: Instantiation, step: ExternStep, nodes: StepNodes,
    structured: Callable[[str], str],
) -> ExternStep:
    """A library call, or a native branch or loop; its structured IR is made when it is read."""
    node = nodes.node(step.node)
    return ExternStep(node, [source_at(instantiation, source) for source in step.sources],
                      [place_at(instantiation, place) for place in step.targets],
                      None if step.run is None else _run_at(
                          instantiation, step.run, node, nodes, partial(structured, node.name)))


def _run_at(
    instantiation: Instantiation, run: ControlRun, node: Node, nodes: StepNodes,
    structured: Callable[[], str],
) -> ControlRun:
    assert isinstance(run.program, ControlProgram)
    program = program_at(instantiation, run.program, node, nodes, structured)
    return ControlRun(node, [instantiation.data(row) for row in run.strides], run.reused, program)
