"""Schedules of symbolic sizes at the sizes of a call: places and loop forms have their symbols
substituted, machine code is the same.

What lowering and specialisation asked of the symbols must have the same answers (see
`fusec.ir.symbolic_numbers`), so the result is what they make of the graph at these sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fusec.ir import Graph
from fusec.ir.instantiate import Instantiation
from fusec.ir.lazy_values import lazy

from .loop_ir import Kernel, Param
from .schedule import KernelStep, Place, Schedule, Traffic
from .specialise import LoopForm, LoopOperand


class StepAtSizes(KernelStep):
    """``of`` at other sizes; its loop IR, which people read and no call needs, is lowered anew."""

    def __init__(
        self, of: KernelStep, instantiation: Instantiation, lowered: Callable[[], KernelStep]
    ) -> None:
        self.places = [place_at(instantiation, place) for place in of.places]
        self.not_empty = instantiation.data(of.not_empty)
        self.forms = [form_at(instantiation, form) for form in of.forms]
        self.code = of.code
        self._params = tuple(Param(p.dtype, instantiation.data(p.value)) for p in of.params)
        self._lowered = lowered

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
    """``of``, all of whose steps are kernels, at other sizes."""

    def __init__(
        self, of: Schedule, instantiation: Instantiation, graph: Graph, traced: Graph,
        lowered: Callable[[], Schedule],
    ) -> None:
        self._of, self._found, self._lower = of, instantiation, lowered
        steps = [StepAtSizes(step, instantiation, partial(self._lowered_step, number))
                 for number, step in enumerate(of.kernels)]
        super().__init__(
            list(steps), [place_at(instantiation, place) for place in of.temps], of.cells,
            [place_at(instantiation, x) if isinstance(x, Place) else x for x in of.outputs],
            graph, of.backend, traced)

    @lazy
    def _lowered(self) -> Schedule:
        return self._lower()

    def _lowered_step(self, number: int) -> KernelStep:
        return self._lowered.kernels[number]

    @lazy
    def traffic(self) -> Traffic:
        return Traffic(*map(self._found.data, self._of.traffic))


def is_open(schedule: Schedule) -> bool:
    """Whether it can be made for other sizes: library calls, loops and branches, and views that
    library calls take, have closures and code of their own sizes."""
    places = [*schedule.temps, *(p for step in schedule.kernels for p in step.places),
              *(x for x in schedule.outputs if isinstance(x, Place))]
    return schedule.backend.is_native and not schedule.externs and not any(
        place.views for place in places) and all(place.is_static for place in places)


def place_at(instantiation: Instantiation, place: Place) -> Place:
    shape = instantiation.data(place.shape)
    strides = instantiation.data(place.strides)
    return place if shape is place.shape and strides is place.strides else replace(
        place, shape=shape, strides=strides)


def form_at(instantiation: Instantiation, form: LoopForm) -> LoopForm:
    """The form; its nest, of which only the structure is read from here on, stays open."""
    return replace(
        form, extents=instantiation.data(form.extents), params=instantiation.data(form.params),
        operands=tuple(_operand_at(instantiation, operand) for operand in form.operands))


def _operand_at(instantiation: Instantiation, o: LoopOperand) -> LoopOperand:
    return LoopOperand(
        o.buffer, o.dtype, instantiation.data(o.offset), instantiation.data(o.strides), o.is_store,
        instantiation.data(o.gathered))
