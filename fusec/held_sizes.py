"""Arrays that attributes and outer variables hold, whose sizes go with those of arguments.

``optimiser.m`` is as long as the argument ``x`` in each call, so one trace serves all lengths if the
axis of both is one symbol.  That an axis goes with an argument is seen, not supposed: it had the size
of the argument in an earlier call, and has it in this one, where that is another size.  The guards
then compare layouts at the sizes of each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.ir import Graph
from fusec.ir.instantiate import Instantiation
from fusec.trace.facts.layout import contiguous, like_order
from fusec.trace.guards.guard import Guard
from fusec.trace.guards.measures import Layout, layout_of

from .records import dataclass

if TYPE_CHECKING:
    from fusec.trace.call.symbolic_arguments import OpenArguments
    from fusec.trace.tracer import Traced

Shapes = Mapping[str, tuple[Any, ...]]
MOST_EARLIER = 8  # calls that are compared


@dataclass(frozen=True)
class EarlierCall:
    """``sizes`` of its arguments, and the shapes of what it read from outside, by path."""

    sizes: Mapping[str, int]
    shapes: Shapes


def shapes_outside(graph: Graph, first: int) -> Shapes:
    """Those of the inputs from ``first`` on, which are read from outside."""
    return {v.node.attrs["path"]: v.type.shape for v in graph.inputs[first:]}


class HeldLayouts:
    """The layouts, in symbols of a trace that begins, of arrays that it meets outside."""

    def __init__(self, arguments: OpenArguments, earlier: Iterable[EarlierCall]) -> None:
        self._hints = arguments.sizes.hints
        self._symbols = arguments.sizes.symbols()
        self._named = {name for shape, _ in arguments.layouts.values()
                       for name in map(str, _symbols_in(shape))}
        self._earlier = list(earlier)

    def of(self, path: str, array: np.ndarray) -> tuple[Any, Any] | None:
        """Shape and strides; None where no axis goes with an argument, or there are gaps."""
        order = like_order(array.strides)
        if array.strides != contiguous(array.shape, array.itemsize, order):
            return None
        names = [self._name(path, array.ndim, axis, n) for axis, n in enumerate(array.shape)]
        if not any(names):
            return None
        shape = tuple(n if name is None else self._symbols[name]
                      for n, name in zip(array.shape, names, strict=True))
        return shape, contiguous(shape, array.itemsize, order)

    def _name(self, path: str, ndim: int, axis: int, size: int) -> str | None:
        """The symbol that the axis was seen to go with."""
        for name in self._named:
            if self._hints[name] == size and any(
                    len(shape := call.shapes.get(path, ())) == ndim
                    and call.sizes[name] == shape[axis] != size for call in self._earlier):
                return name
        return None


def _symbols_in(shape: Iterable[Any]) -> list[Any]:
    return [n.expression for n in shape if hasattr(n, "expression")]


class HeldGuards:
    """The guards of a trace; those of arrays with symbols in their layouts compare these at the
    sizes of a call."""

    def __init__(self, traced: Traced) -> None:
        first = len(traced.graph.inputs) - len(traced.captured)
        layouts = {id(g.read): g for g in traced.guards if type(g.measure) is Layout}
        self._guards = traced.guards
        self._open: dict[int, tuple[Any, Any]] = {}  # by the guard's id: shape and strides
        self.are_complete = True
        for number, source in enumerate(traced.captured, first):
            shape = traced.graph.inputs[number].type.shape
            if _symbols_in(shape):
                guard = layouts.get(id(source))
                self.are_complete &= guard is not None
                self._open[id(guard)] = shape, traced.input_strides[number]

    def at(self, sizes: Mapping[str, int]) -> list[Guard]:
        """The guards of a plan for these sizes."""
        if not self._open:
            return self._guards
        return [self._at(guard, Instantiation(sizes)) for guard in self._guards]

    def held_for(self, sizes: Mapping[str, int], guards: Iterable[Guard]) -> bool:
        """Whether guards of a plan of its own, of a call of these sizes, hold, or would if arrays
        had the layouts of that call, as this trace has them."""
        layouts = {(g.subject, g.measure.layout) for g in self.at(sizes) if (
            type(g.measure) is Layout and self._open)}
        return all((type(g.measure) is Layout and (g.subject, g.measure.layout) in layouts)
                   or g.holds() for g in guards)

    def _at(self, guard: Guard, mapping: Instantiation) -> Guard:
        if id(guard) not in self._open:
            return guard
        shape, strides = self._open[id(guard)]
        dtype, *_, is_writeable = guard.measure.layout
        layout = Layout(None)
        layout.layout = dtype, mapping.data(shape), mapping.data(strides), is_writeable
        return Guard(guard.subject, guard.place, guard.read, layout,
                     is_native=guard.is_native, is_quiet=guard.is_quiet)


__all__ = ["EarlierCall", "HeldGuards", "HeldLayouts", "shapes_outside"]
