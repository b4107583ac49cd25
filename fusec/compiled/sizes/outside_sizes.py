"""Arrays that attributes and outer variables hold, whose sizes go with those of arguments.

``optimiser.m`` is as long as the argument ``x`` in each call, so one trace serves all lengths if
the axis of both is one symbol.  That an axis goes with an argument is seen, not supposed: it had
the size of the argument in an earlier call, and has it in this one, where that is another size.  An
axis that had another size before, and goes with none, has a symbol of its own.  The guards then
compare layouts at the sizes of each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.polynomials import ARGUMENT, LEAST_ARGUMENT, is_argument
from fusec.ir.sizes.symbolic_numbers import stored
from fusec.trace.facts.layout import contiguous, like_order
from fusec.trace.guards.guard import Checks, Guard
from fusec.trace.guards.measures import Bits, LayoutMeasure, layout_of
from fusec.trace.guards.places import Attribute

if TYPE_CHECKING:
    from fusec.trace.call.symbolic_arguments import OpenArguments
    from fusec.trace.tracer import Traced

MOST_EARLIER = 8  # calls that are compared


def varying_attributes(guards: Iterable[Guard]) -> set[str]:
    """The attributes whose float, a constant of a plan with these guards, is another one now
    (``grid.dx`` is ``1 / n``), or was an input of it."""
    return {g.read.name for g in guards if type(g.read) is Attribute and _varies(g)}


def _varies(guard: Guard) -> bool:
    if type(guard.measure) is LayoutMeasure:
        return bool(guard.measure.layout == (float,))
    return type(guard.measure) is Bits and (
        guard.measure.kind is type(guard.read()) is float and not guard.holds())


def differ_in_sizes(guards: Iterable[Guard]) -> bool:
    """Whether an array that a plan of these guards reads has other sizes now."""
    return any(_have_other_sizes(g.measure.layout, _layout_now(g))
               for g in guards if type(g.measure) is LayoutMeasure)


def _layout_now(guard: Guard) -> tuple[Any, ...]:
    try:
        return layout_of(guard.read())
    except LookupError:  # an item that the container has no more
        return ()


def _have_other_sizes(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) == 4 and a[0] == b[0] and len(a[1]) == len(b[1]) and a[1] != b[1]


@dataclass(frozen=True)
class EarlierCall:
    """``sizes`` of its arguments, and the shapes of arrays read from outside, by path."""

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, traced: Traced, sizes: Mapping[str, int]) -> EarlierCall:
        graph = traced.graph
        outside = graph.inputs[len(graph.inputs) - len(traced.captured):]
        return cls(sizes, {v.node.attrs["path"]: v.type.shape for v in outside})


class HeldLayouts:
    """The layouts, in symbols of a trace that begins, of arrays that it meets outside."""

    def __init__(self, arguments: OpenArguments, earlier: Iterable[EarlierCall]) -> None:
        self._sizes, self._earlier = arguments.sizes, list(earlier)
        self._named = {name for shape, _ in arguments.layouts.values()
                       for name in map(str, _symbols_in(shape))}
        self._own: dict[int, str] = {}  # symbols that no argument has, by their hints
        self.are_used = False

    def of(self, path: str, array: np.ndarray) -> tuple[Any, Any] | None:
        """Shape and strides; None where no axis goes with an argument, or there are gaps."""
        order = like_order(array.strides)
        if array.strides != contiguous(array.shape, array.itemsize, order):
            return None
        names = [self._name(path, array.ndim, axis, n) for axis, n in enumerate(array.shape)]
        if not any(names):
            return None
        self.are_used = True
        symbols = self._sizes.symbols()
        shape = tuple(n if name is None else symbols[name]
                      for n, name in zip(array.shape, names, strict=True))
        return shape, contiguous(shape, array.itemsize, order)

    def _name(self, path: str, ndim: int, axis: int, size: int) -> str | None:
        """The symbol that the axis was seen to go with, or one of its own where it had another
        size; None where it always had this one."""
        calls = [call for call in self._earlier
                 if len(shape := call.shapes.get(path, ())) == ndim and shape[axis] != size]
        if not calls or size < LEAST_ARGUMENT:
            return None
        for name in self._named:
            if self._sizes.hints[name] == size and any(
                    call.sizes[name] == call.shapes[path][axis] for call in calls):
                return name
        if size not in self._own:
            self._own[size] = f"{ARGUMENT}{len(self._sizes.hints)}"
            self._sizes.hints[self._own[size]] = size
        return self._own[size]


def _symbols_in(shape: Iterable[Any]) -> list[Any]:
    return [n.expression for n in shape if hasattr(n, "expression")]


def _layout_then(guard: Guard) -> Any:
    """The layout of its place's array when the guard was made."""
    if type(guard.measure) is Bits:
        return layout_of(guard.measure.value)
    return guard.measure.layout if type(guard.measure) is LayoutMeasure else None


class HeldGuards:
    """The guards of a trace; those of arrays with symbols in their layouts compare these at the
    sizes of a call."""

    def __init__(self, traced: Traced) -> None:
        first = len(traced.graph.inputs) - len(traced.captured)
        layouts = {id(g.read): g for g in traced.guards if type(g.measure) is LayoutMeasure}
        self._guards = traced.guards
        assert traced.symbolic is not None
        self._sizes = traced.symbolic.sizes
        self._open: dict[int, tuple[Any, Any]] = {}  # by the guard's id: shape and strides
        self.are_complete = True
        for number, source in enumerate(traced.captured, first):
            shape = traced.graph.inputs[number].type.shape
            if _symbols_in(shape):
                guard = layouts.get(id(source))
                self.are_complete &= guard is not None
                self._open[id(guard)] = shape, traced.input_strides[number]

    def bound(
        self, sizes: Mapping[str, int], layout: Callable[[Guard], Any] = _layout_now,
    ) -> Mapping[str, int] | None:
        """The sizes of a call, with those that only arrays outside have; None where one has
        another number of axes."""
        found = dict(sizes)
        for guard in self._guards if self._open else ():
            if id(guard) in self._open:
                names, shape = self._open[id(guard)][0], layout(guard)[1:2]
                if not shape or len(shape[0]) != len(names):
                    return None
                for name, size in zip(map(str, map(stored, names)), shape[0], strict=True):
                    if is_argument(name):
                        found.setdefault(name, size)
        return found

    @lazy
    def checks(self) -> Checks | None:
        """Of the guards of each plan, where sizes change none."""
        return None if self._open else Checks(self._guards)

    def hold(self, sizes: Mapping[str, int]) -> bool:
        """Whether all of them do, for a call of these sizes."""
        if self.checks is not None:
            return self.checks.every()
        return all(guard.holds() for guard in self.at(sizes))

    def at(self, sizes: Mapping[str, int]) -> list[Guard]:
        """The guards of a plan for these sizes."""
        if not self._open:
            return self._guards
        return [self._at(guard, Instantiation(sizes)) for guard in self._guards]

    def held_for(self, sizes: Mapping[str, int], guards: Iterable[Guard]) -> bool:
        """Whether this trace serves a call of these sizes, of which another plan has these guards:
        they hold, or would if arrays and numbers that this trace reads were those of that call."""
        guards = list(guards)
        then = {g.subject: g.measure.layout for g in guards if type(g.measure) is LayoutMeasure}
        bound = self.bound(sizes, lambda guard: then.get(guard.subject, ()))
        if bound is None or not self._sizes.hold(bound):
            return False
        layouts = {(g.subject, g.measure.layout) for g in self.at(bound) if (
            type(g.measure) is LayoutMeasure and self._open)}
        return all((g.subject, _layout_then(g)) in layouts or g.holds() for g in guards)

    def _at(self, guard: Guard, mapping: Instantiation) -> Guard:
        if id(guard) not in self._open:
            return guard
        shape, strides = self._open[id(guard)]
        dtype, *_, is_writeable = guard.measure.layout
        layout = LayoutMeasure(None)
        layout.layout = dtype, mapping.data(shape), mapping.data(strides), is_writeable
        return Guard(guard.subject, guard.place, guard.read, layout,
                     is_native=guard.is_native, is_quiet=guard.is_quiet)


__all__ = ["EarlierCall", "HeldGuards", "HeldLayouts", "differ_in_sizes",
           "varying_attributes"]
