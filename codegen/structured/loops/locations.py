"""Where values live, and which values live in a memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.ir import Value

from ..memory import Location, Memory, View


class Locations(dict[Value, Location]):
    """A table of locations that knows the values of each memory too."""

    def __init__(self, pairs: Iterable[tuple[Value, Location]] = ()) -> None:
        super().__init__()
        self._values: dict[Memory, dict[Value, None]] = {}
        self.add(pairs)

    def __setitem__(self, value: Value, location: Location) -> None:
        before = self.get(value)
        if isinstance(before, View):
            del self._values[before.memory][value]
        if isinstance(location, View):
            self._values.setdefault(location.memory, {})[value] = None
        super().__setitem__(value, location)

    def add(self, pairs: Iterable[tuple[Value, Location]]) -> None:
        """Several at once."""
        for value, location in pairs:
            self[value] = location

    def values_in(self, memory: Memory) -> Iterator[tuple[Value, View]]:
        """The values that live there, with the views that show them."""
        for value in self._values.get(memory, ()):
            location = self[value]
            if isinstance(location, View):
                yield value, location
