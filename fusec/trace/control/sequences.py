"""Python's iterators in a trace: sequences that a loop of the graph can count.

They are iterators, as Python's are: who goes over one takes its items.  A loop of the graph takes
all of them at once, after which nothing goes on with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import unsupported
from fusec.ir.sizes.symbolic_numbers import is_int

from ..values.trace import Trace

NO_STEP = "range() arg 3 must not be zero"


@dataclass(frozen=True)
class TracedRange:
    """``range(start, stop, step)`` of which a part is known only at run time."""

    trace: Trace
    start: Any
    stop: Any
    step: Any

    @classmethod
    def of(cls, trace: Trace, *ends: Any) -> TracedRange:
        """``range(*ends)``, which refuses the step 0."""
        start, stop, step = (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3]
        if is_int(step) and step == 0:
            raise trace.error(ValueError(NO_STEP))
        return cls(trace, start, stop, step)

    @property
    def known(self) -> range:
        """Python's own, where nothing of it is data."""
        return range(*(p.__index__() for p in (self.start, self.stop, self.step)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, key: Any) -> Any:
        return self.known[key]

    def __repr__(self) -> str:
        return repr(self.known)


@dataclass(eq=False)
class PythonIterator:
    """An iterator over parts; ``is_taken`` by a loop of the graph."""

    sequences: ClassVar[int | None] = None  # how many parts are, the first ones; None: all
    only_joins: ClassVar[bool] = False  # the items of its parts, in their order

    parts: tuple[Any, ...]
    is_taken: bool = field(default=False, init=False)
    _started: Iterator[Any] | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.is_taken:
            raise unsupported(
                f"going on with a {self.name} that a loop went over",
                cure="make it anew for each loop, or make a list of it")
        if self._started is None:
            self._started = self._items()
        return next(self._started)

    def _items(self) -> Iterator[Any]:
        raise NotImplementedError

    def counted(self, trace: Trace, *parts: Any) -> Any:
        """Its items by their positions, of parts that have such; None where they cannot be."""
        raise NotImplementedError

    def at_once(self, taken: Callable[[Any], Any]) -> PythonIterator:
        """The same, to be gone over while nothing of the program runs: its parts are ``taken`` so.
        """
        if self.is_idle:
            self.parts = tuple(map(taken, self.parts))
        return self

    @property
    def is_idle(self) -> bool:
        """Whether it runs nothing of the program's, and nothing took an item."""
        return self.only_joins and self.is_fresh and all(
            part.is_idle for part in self.parts if isinstance(part, PythonIterator))

    @property
    def is_fresh(self) -> bool:
        """Whether nothing took an item."""
        return not self.is_taken and self._started is None

    def take(self) -> None:
        """A loop of the graph goes over it."""
        self.is_taken = True
        for part in self.parts:
            if isinstance(part, PythonIterator):
                part.take()

    @property
    def name(self) -> str:
        """Python's word for it."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class NumberTable:
    """A list, tuple or array of numbers of one type, or of tuples of such (in ``columns``): loops
    of Python's own where the graph refuses them."""

    trace: Trace
    items: Any
    columns: tuple[NumberTable, ...] = ()

    def __len__(self) -> int:
        return len(self.items)


def table(trace: Trace, items: Any) -> NumberTable | None:
    """The items of one type as a table; None where they are not numbers."""
    if type(items) is np.ndarray:
        return NumberTable(trace, items) if items.ndim == 1 and items.dtype.kind in "iufc" else None
    if type(items) not in (list, tuple) or not items:
        return None
    kinds = set(map(type, items))
    kind = kinds.pop()
    if kinds or not (kind in (int, float, complex, tuple) or issubclass(kind, np.number)):
        return None
    if kind is tuple:
        return _of_tuples(trace, items)
    fits = kind is not int or all(-(1 << 63) <= item < 1 << 63 for item in items)
    return NumberTable(trace, items) if fits else None


def _of_tuples(trace: Trace, items: Any) -> NumberTable | None:
    if len(set(map(len, items))) > 1:
        return None
    columns = [table(trace, column) for column in zip(*items, strict=True)]
    tables = tuple(column for column in columns if column is not None)
    return NumberTable(trace, items, tables) if tables and len(tables) == len(columns) else None


def progression(items: Any) -> range | None:
    """Whole numbers at equal steps as a range."""
    if len(items) < 2 or not all(isinstance(item, (int, np.integer)) for item in items[:2]):
        return None
    first, step = int(items[0]), int(items[1]) - int(items[0])
    if step == 0:
        return None
    numbers = range(first, first + step * len(items), step)
    return numbers if np.array_equal(np.asarray(items), np.asarray(numbers)) else None
