"""Arrays that are several items of the lists which a loop of the graph fills, as one object each.

A row by itself stands for each item after the loop, so a write to one would not be seen in the
others: such items are only read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ..values.selected_arrays import roots
from ..values.storage import Storage
from .appended_items import Appended
from .growing_lists import GrowingList


class SharedItems:
    """Of one loop; ``left`` gives the memory that a carried array's variable is left with."""

    def __init__(
        self, appended: Iterable[Appended], lists: Iterable[GrowingList], start: int,
        left: Callable[[Storage], Iterable[Storage]],
    ) -> None:
        self.start, self.left = start, left
        lists = [*lists]
        memory = [s for one in appended for s in one.memory if s is not None]
        memory += [s for one in lists for s in one.appended()]
        items = [self._of(s) for s in memory]
        times = Counter(s for found in items for s in found)
        times.update(s for one in lists for s in {*one.found})
        self.several = {s for s, n in times.items() if n > 1 and s.born >= start}
        self.linked = [s for found in items for s in found if not self.several.isdisjoint(found)]
        self.linked += [s for one in lists if not self.several.isdisjoint(one.found)
                        for s in (*one.found, *one.before())]

    def others(self, memory: Iterable[Storage | None]) -> list[Storage]:
        """Memory that items of this memory may show too, if they are items elsewhere."""
        return [] if all(s is None or self.several.isdisjoint(self._of(s)) for s in memory) else (
            [s for s in self.linked if s in self.several or s.born < self.start])

    def _of(self, storage: Storage) -> set[Storage]:
        """The memory that an item may show, in any iteration."""
        return {*self._found(storage, set())}

    def _found(self, storage: Storage, seen: set[Storage]) -> Iterator[Storage]:
        for root in roots(storage):
            if root not in seen:
                seen.add(root)
                yield root
                for other in self.left(root):
                    yield from self._found(other, seen)
