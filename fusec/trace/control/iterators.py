"""Python's iterators over parts, as Python goes over them and as loops of the graph count them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any

from fusec.ir.sizes.symbolic_numbers import is_int

from ..operands.operands import as_traced, cast
from ..operands.python_numbers import Intervals, interval
from ..values.array import TracedArray, number
from ..values.trace import Trace
from .ranges import I64, CountedItems, numbers_from
from .sequences import PythonIterator


class Zip(PythonIterator):
    """``zip``: items are tuples, as many as the shortest part has."""

    only_joins = True

    def _items(self) -> Iterator[Any]:
        return zip(*self.parts, strict=False)

    def counted(self, trace: Trace, *parts: CountedItems) -> CountedItems:
        count = reduce(partial(_fewer, trace), (p.count for p in parts))
        return CountedItems(count, lambda k: tuple(p.item(k) for p in parts))


class Enumerate(PythonIterator):
    """``enumerate``: parts are the items and the first number."""

    sequences = 1
    only_joins = True

    def _items(self) -> Iterator[Any]:
        items, start = self.parts
        return ((start + k, item) for k, item in enumerate(items))

    def counted(self, trace: Trace, items: CountedItems) -> CountedItems:
        place = numbers_from(self.parts[1], 1)
        return CountedItems(items.count, lambda k: (place(k), items.item(k)))


class Reversed(PythonIterator):
    """``reversed`` of a range, an array, or a list that a loop made."""

    def _items(self) -> Iterator[Any]:
        (items,) = self.parts
        if type(items) is TracedArray:
            return (items[k] for k in reversed(range(items.shape[0])))
        if type(items) is list:
            return reversed(items)
        return reversed(range(*map(int, (items.start, items.stop, items.step))))

    def counted(self, trace: Trace, items: CountedItems) -> CountedItems:
        return CountedItems(items.count, lambda k: items.item(items.count - 1 - k))


class Map(PythonIterator):
    """``map``; parts are tuples of arguments and the function."""

    sequences = 1

    def _items(self) -> Iterator[Any]:
        items, function = self.parts
        return itertools.starmap(function, items)

    def counted(self, trace: Trace, items: CountedItems) -> CountedItems:
        function = self.parts[1]
        return CountedItems(items.count, lambda k: function(*items.item(k)))


class Product(PythonIterator):
    """``itertools.product`` and ``np.ndindex``: tuples, the last part the fastest."""

    def _items(self) -> Iterator[Any]:
        return itertools.product(*self.parts)

    def counted(self, trace: Trace, *parts: CountedItems) -> CountedItems | None:
        if not all(is_int(p.count) for p in parts):
            return None
        return CountedItems(math.prod(p.count for p in parts), partial(_place, trace, parts))


class NdEnumerate(PythonIterator):
    """``np.ndenumerate``: pairs of a place and the element there; parts are places and array."""

    sequences = 1

    def _items(self) -> Iterator[Any]:
        return map(self._pair, self.parts[0])

    def counted(self, trace: Trace, places: CountedItems) -> CountedItems:
        return CountedItems(places.count, lambda k: self._pair(places.item(k)))

    def _pair(self, place: tuple[Any, ...]) -> tuple[Any, Any]:
        return place, self.parts[1][place]


def _fewer(trace: Trace, a: Any, b: Any) -> Any:
    """The smaller count."""
    if type(a) is not TracedArray and type(b) is not TracedArray:
        return min(a, b)
    x, y = as_traced(trace, a).value, as_traced(trace, b).value
    if x == y:
        return a
    least = cast(trace, trace.emit("Minimum", x, y), I64, "weak")
    bounds = [interval(trace, v) for v in (x, y)]
    if None not in bounds:
        trace.part(Intervals)[least] = tuple(map(min, zip(*bounds, strict=True)))
    return number(trace, least)


def _place(trace: Trace, parts: Sequence[CountedItems], k: Any) -> tuple[Any, ...]:
    """Item ``k`` of a product: its digits in the mixed base of the counts."""
    items = []
    for part in reversed(parts[1:]):
        items.append(part.item(_within(trace, k % part.count, part.count)))
        k = k // part.count
    items.append(parts[0].item(_within(trace, k, parts[0].count)))
    return tuple(reversed(items))


def _within(trace: Trace, k: Any, count: int) -> Any:
    """A position, known to be below the count."""
    if type(k) is TracedArray:
        trace.part(Intervals)[k.value] = (0, count - 1)
    return k
