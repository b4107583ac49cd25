"""How often the body of a loop in loops runs, in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusec.core.records import dataclass
from fusec.ir import Value
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ops.admission.integer_ranges import Around, exact

from .trips import Counter, Trips

MOST_COUNTED = 20_000  # iterations of loops around that are gone through one by one


@dataclass(frozen=True)
class Nested:
    """A loop: its trip count, the bounds of numbers around it, and its counters in its body."""

    trips: Trips | None
    around: Around
    counters: Sequence[tuple[Counter, Value, Value]]  # with the first value, and that in the body

    @property
    def most(self) -> Any:
        return None if self.trips is None else self.trips.most(self.around)


def entries_of(nest: Sequence[Nested]) -> Any:
    """A number that is not exceeded: counted where counters say how often inner loops run, else
    from limits; None where there are none."""
    limit: Any = 1
    for loop in nest:
        most = loop.most
        if most is None or (isinstance(most, Dim) and most.symbols):
            return None
        limit = limit * most
    if len(nest) < 2 or type(limit) is Symbolic or not isinstance(limit, int):
        return limit
    budget = [MOST_COUNTED]
    counted = _counted(nest, {}, budget)
    return limit if counted is None else counted


def _counted(nest: Sequence[Nested], numbers: dict[Value, int], budget: list[int]) -> int | None:
    """The iterations of the innermost loop; None where data decide, or there are too many."""
    loop, rest = nest[0], nest[1:]
    trips = loop.trips
    assert trips is not None
    start, end = (exact(v, numbers) for v in (trips.start, trips.end))
    if start is None or end is None:
        return None
    count = trips.over(end - start if trips.counter.step > 0 else start - end)
    if not rest:
        return count
    budget[0] -= count
    if budget[0] < 0:
        return None
    total = 0
    for iteration in range(count):
        inner = dict(numbers)
        for counter, first, there in loop.counters:
            value = exact(first, numbers)
            if value is not None:
                inner[there] = value + iteration * int(counter.step)
        more = _counted(rest, inner, budget)
        if more is None:
            return None
        total += more
    return total
