"""Where values live, and which values live in a memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.ir import Value

from ..memory import Location, Memory, View


class Locations:
    """The location of each value, and the views of each memory."""

    def __init__(self, pairs: Iterable[tuple[Value, Location]] = ()) -> None:
        self._locations: dict[Value, Location] = {}
        self._views: dict[Memory, dict[Value, View]] = {}
        self.add(pairs)

    def __getitem__(self, value: Value) -> Location:
        return self._locations[value]

    def get(self, value: Value) -> Location | None:
        return self._locations.get(value)

    def __setitem__(self, value: Value, location: Location) -> None:
        before = self.get(value)
        if isinstance(before, View):
            del self._views[before.memory][value]
        if isinstance(location, View):
            self._views.setdefault(location.memory, {})[value] = location
        self._locations[value] = location

    def add(self, pairs: Iterable[tuple[Value, Location]]) -> None:
        """Several at once."""
        for value, location in pairs:
            self[value] = location

    def values_in(self, memory: Memory) -> Iterator[tuple[Value, View]]:
        """The values that live there, with the views that show them."""
        yield from self._views.get(memory, {}).items()
