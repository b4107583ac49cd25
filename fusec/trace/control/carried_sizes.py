"""Arrays that an iteration leaves with other sizes than it found: ``v = v[:-1] + v[1:]``.

Such an array goes from iteration to iteration as a buffer of the largest size there can be and, as
a number, how much of it is taken.  Axes whose sizes are the same number in every iteration are a
*class*, with one number and one symbol, so that the program may compute with two such arrays.
Which they are is found by trying, as everything that a loop carries: sizes that begin alike are one
class until an iteration leaves them differently.

The largest size is that of an iteration that begins with the largest possible, again and again:
for as many iterations as there are, or from a first one on that makes nothing larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from fusec.core.records import dataclass, field
from fusec.ir import TensorType, Value
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import Size, is_static, symbols_of
from fusec.ops.calls.library import size_limits
from fusec.ops.rows.windows import UNLIMITED

from ..choice.regions import placeholder
from ..index.windows import extent
from ..operands.operands import as_traced
from ..operands.python_numbers import Intervals
from ..operands.sizes import SizeTable, number
from ..values.array import TracedArray
from ..values.trace import Trace
from .loop_facts import Capacity, Carried, Leaf, LoopFacts
from .ranges import I64

MAX_STEPS = 1 << 14  # iterations whose sizes are computed one by one
MAX_SETTLING = 1 << 6  # the same, of a loop that data ends
MAX_ELEMENTS = 1 << 28  # of a buffer


class UnboundedSizeError(Exception):
    """No array can be made beforehand that all sizes fit into."""


@dataclass
class SizeClass:
    """Axes of one size: at first, in an iteration, and after it."""

    initial: Size
    capacity: Capacity
    count: Carried
    excess: Size  # a symbol
    size: Size
    finals: dict[tuple[Leaf, int], Size] = field(default_factory=dict)


class CarriedSizes:
    """Those of one attempt."""

    def __init__(
        self, trace: Trace, facts: LoopFacts, trips: int | None, carry: Callable[[Carried], None]
    ) -> None:
        self.trace, self.facts, self.trips, self.carry = trace, facts, trips, carry
        self.classes: dict[int, SizeClass] = {}
        self.exact: dict[int, int] | None = None  # sizes after the loop, where they are known

    def axes(self, key: Leaf) -> dict[int, int]:
        """The axes of an array whose sizes change, with their classes."""
        return {axis: c for (k, axis), c in self.facts.axes.items() if k == key}

    # -- before an iteration

    def parameter(self, key: Leaf, type_: TensorType, initial: Value) -> tuple[Carried, Value]:
        """The buffer, and the part of it that the array is."""
        axes = self.axes(key)
        for axis, number_ in axes.items():
            if number_ not in self.classes:
                self.classes[number_] = self._class(number_, type_.shape[axis])
        shape = tuple(self.classes[axes[axis]].capacity.most if axis in axes else size
                      for axis, size in enumerate(type_.shape))
        if not is_static(shape) or math.prod(shape) > MAX_ELEMENTS:
            raise UnboundedSizeError
        whole = TensorType(type_.dtype, shape)
        buffer = Carried(placeholder(self.trace, whole, key[0]), self._reserved(initial, shape),
                         leaf=key)
        return buffer, self._part(buffer.parameter, axes)

    def _class(self, number_: int, initial: Size) -> SizeClass:
        trace = self.trace
        capacity = self.facts.capacities.get(number_)
        if capacity is None:
            capacity = self.facts.capacities[number_] = self._guessed(number_, initial)
        parameter = placeholder(trace, TensorType(I64, (), "weak"), "size")
        trace.part(Intervals)[parameter] = (0, capacity.most)
        count = Carried(parameter, as_traced(trace, number(trace, initial)).value,
                        leaf=("#size", number_))
        self.carry(count)
        beyond = self._beyond(parameter, capacity)
        _, _, excess = extent(trace, slice(None, TracedArray(trace, None, (), beyond)), 1,
                              capacity.entering - capacity.least)
        trace.part(SizeTable).carried.add(str(excess))
        return SizeClass(initial, capacity, count, excess, capacity.least + excess)

    def _guessed(self, number_: int, initial: Size) -> Capacity:
        """The capacity if all iterations add as much as the first one."""
        begin, step = self._limit(initial), self.facts.steps.get(number_)
        if self.trips is None or step is None:
            return Capacity(0, begin, begin)
        last = max(begin + step * (self.trips - 1), 0)
        return Capacity(min(begin, last), max(begin, last), max(begin, last + step))

    def _beyond(self, count: Value, capacity: Capacity) -> Value:
        """By how much a size is more than the least: the symbol is for that, so that
        ``v[:1]`` of two elements at least is known to be one."""
        if not capacity.least:
            return count
        trace, zero = self.trace, self.trace.builder.const(0)
        more = trace.emit("Sub", count, trace.builder.const(capacity.least))
        result: Value = trace.emit("Maximum", more, zero)
        trace.part(Intervals)[result] = (0, capacity.entering - capacity.least)
        return result

    def _part(self, buffer: Value, axes: Mapping[int, int]) -> Value:
        """As much of a buffer as its numbers say."""
        trace, sizes = self.trace, [self.classes[c].size for c in axes.values()]
        counts = [as_traced(trace, number(trace, size)).value for size in sizes]
        return trace.emit("Window", buffer, *(trace.builder.const(0) for _ in axes), *counts,
                          axes=tuple(axes), steps=(1,) * len(axes), sizes=tuple(sizes))

    def _reserved(self, value: Value, shape: tuple[int, ...]) -> Value:
        return value if value.shape == shape else self.trace.emit("Reserve", value, shape=shape)

    # -- after an iteration

    def fitted(self, key: Leaf, entered: TensorType, left: TensorType) -> TensorType:
        """An iteration's array, with the sizes at its end where those may change."""
        axes = self.axes(key)
        if not axes or entered.rank != left.rank:
            return entered
        return TensorType(entered.dtype, tuple(
            left.shape[a] if a in axes else size for a, size in enumerate(entered.shape)))

    def left(self, key: Leaf, final: Value, carried: Carried) -> Value:
        """The array at the end of an iteration, as it is carried."""
        axes = self.axes(key)
        for axis, c in axes.items():
            self.classes[c].finals[key, axis] = final.shape[axis]
            self.classes[c].count.is_needed |= carried.is_needed
        return self._reserved(final, carried.parameter.shape) if axes else final

    def settle(self, is_left: bool) -> None:
        """Complete the numbers, or note the facts for another attempt; ``is_left``: there may be
        fewer iterations than known.  Raises `UnboundedSizeError`."""
        classes = {c: x for c, x in self.classes.items() if x.finals}
        if not classes or self._split(classes):
            return
        finals = {c: next(iter(x.finals.values())) for c, x in classes.items()}
        mine = symbols_of(tuple(x.excess for x in classes.values()))
        for c, final in finals.items():
            if not self._is_of_iteration(final, mine):
                raise UnboundedSizeError  # the same after every iteration: no reason for a buffer
            classes[c].count.final = as_traced(self.trace, number(self.trace, final)).value
        sequence = _simulated(classes, finals, self.trips)
        largest = self._largest(classes, finals) if sequence is None else {
            c: Capacity(min(sizes[:-1]), max(sizes[:-1]), max(sizes))
            for c, sizes in sequence.items()}
        if any(self.facts.capacities[c] != capacity for c, capacity in largest.items()):
            self.facts.capacities.update(largest)
            self.facts.changed = True
        if sequence is not None and not is_left:
            self.exact = {c: sizes[-1] for c, sizes in sequence.items()}

    def _split(self, classes: Mapping[int, SizeClass]) -> bool:
        """Whether an iteration leaves sizes of one class differently; then they are of several."""
        is_split = False
        for c, x in classes.items():
            for other in list(dict.fromkeys(x.finals.values()))[1:]:
                new = max(self.facts.axes.values()) + 1
                self.facts.axes.update(dict.fromkeys(
                    (axis for axis, size in x.finals.items() if size is other or size == other),
                    new))
                self.facts.capacities.pop(c, None)
                is_split = self.facts.changed = True
        return is_split

    def _is_of_iteration(self, size: Size, mine: frozenset[str]) -> bool:
        """Whether it is computed of carried values, or decided in the iteration."""
        names, definers = symbols_of((size,)), self.trace.part(SizeTable).definers
        first = min(x.count.parameter.node.id for x in self.classes.values())
        return bool(names & mine) or any(
            name in definers and definers[name].node.id > first for name in names)

    def _largest(
        self, classes: Mapping[int, SizeClass], finals: Mapping[int, Size]
    ) -> dict[int, Capacity]:
        trips = self.trips
        now = {c: self._limit(x.initial) for c, x in classes.items()}
        entering, most = dict(now), dict(now)
        for _ in range(MAX_SETTLING if trips is None else min(trips, MAX_STEPS)):
            entering, before = {c: max(entering[c], now[c]) for c in now}, now
            limits = {str(x.excess): now[c] - x.capacity.least for c, x in classes.items()}
            now = {c: max(self._limit(final, limits), 0) for c, final in finals.items()}
            if all(now[c] <= before[c] for c in now):
                break  # bounds of nothing larger are no larger: so it goes on
            most = {c: max(most[c], now[c]) for c in now}
        else:
            if trips is None or trips > MAX_STEPS:
                raise UnboundedSizeError
        return {c: Capacity(0, entering[c], most[c]) for c in now}

    def _limit(self, size: Size, given: Mapping[str, int] | None = None) -> int:
        """The most that a size can be."""
        limits = dict(given or {})
        for name in symbols_of((size,)):
            self._add_limit(name, limits)
        return range_of(size, limits)[1]

    def _add_limit(self, name: str, limits: dict[str, int]) -> None:
        if name in limits:
            return
        node = self.trace.part(SizeTable).definers[name].node
        limit = dict(size_limits(node)).get(name, UNLIMITED)
        for other in symbols_of((limit,)):
            self._add_limit(other, limits)
        limits[name] = range_of(limit, limits)[1]
        if limits[name] >= UNLIMITED:
            raise UnboundedSizeError

    # -- after the loop

    def results(self, outputs: Mapping[Leaf | None, Value]) -> dict[Leaf | None, Value]:
        """The loop's results: the arrays as they are after it, of their own sizes."""
        keys = dict.fromkeys(key for key, _ in self.facts.axes if key in outputs)
        if self.exact is None:
            self._after(outputs)
        return {**outputs, **{key: self._result(key, outputs[key]) for key in keys}}

    def _result(self, key: Leaf, buffer: Value) -> Value:
        trace, axes = self.trace, self.axes(key)
        if self.exact is not None:
            sizes = tuple(self.exact[axes[a]] if a in axes else n
                          for a, n in enumerate(buffer.shape))
            zeros = (0,) * len(sizes)
            part = trace.emit("Slice", buffer, starts=zeros, steps=(1,) * len(sizes), sizes=sizes)
        else:
            part = self._part(buffer, axes)
        return trace.emit("Copy", part)

    def _after(self, outputs: Mapping[Leaf | None, Value]) -> None:
        """From now on the sizes are those after the loop."""
        for c, x in self.classes.items():
            if ("#size", c) in outputs:
                count = TracedArray(self.trace, None, (), outputs["#size", c])
                x.size = extent(self.trace, slice(None, count), 1, x.capacity.most)[2]


def _simulated(
    classes: Mapping[int, SizeClass], finals: Mapping[int, Size], trips: int | None
) -> dict[int, list[int]] | None:
    """The sizes before and after each iteration, until they stay; None where data has a part."""
    names = {c: str(x.excess) for c, x in classes.items()}
    if not trips or trips > MAX_STEPS or not is_static(x.initial for x in classes.values()) or (
            not symbols_of(tuple(finals.values())) <= set(names.values())):
        return None
    sizes = {c: [int(x.initial)] for c, x in classes.items()}
    for _ in range(trips):
        bindings = {names[c]: now[-1] - classes[c].capacity.least for c, now in sizes.items()}
        for c, final in finals.items():
            sizes[c].append(max(resolve(final, bindings), 0))
        if all(now[-1] == now[-2] for now in sizes.values()):
            break
    return sizes
