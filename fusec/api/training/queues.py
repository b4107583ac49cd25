"""Bounded queues between threads: who produces waits where one is full, who consumes where it is
empty.

As in section 4.6 of Abadi et al., "TensorFlow: Large-Scale Machine Learning on Heterogeneous
Distributed Systems" (2015): enqueue and dequeue of one or many, and a close that lets consumers
take the rest, or not.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from fusec.core import locks
from fusec.errors import user_error

T = TypeVar("T")


class ClosedQueueError(EOFError):
    """A queue has been closed: nothing can be put there, or nothing is left."""


class FIFOQueue(Generic[T]):
    """At most ``capacity`` items, taken in the order in which they were put; iterating takes them
    until the queue is closed and empty.

    Any number of threads may use one.  Raises ``ValueError`` for a capacity below 1.
    """

    def __init__(self, capacity: int) -> None:
        if type(capacity) is not int or capacity < 1:
            raise user_error(ValueError, "a queue has room for one item or more",
                             values=[("capacity", repr(capacity))])
        self.capacity = capacity
        self._items: deque[T] = deque()
        self._changed = locks.condition()
        self._is_closed = False
        self._error: BaseException | None = None

    # -- producers

    def enqueue(self, item: T, timeout: float | None = None) -> None:
        """Put an item, when there is room.

        Raises ``ClosedQueueError`` where the queue is closed, meanwhile or before, and
        ``TimeoutError`` after so many seconds.
        """
        with self._changed:
            self._wait(lambda: self._is_closed or len(self._items) < self.capacity, timeout)
            if self._is_closed:
                raise ClosedQueueError("the queue is closed: nothing can be put there")
            self._items.append(item)
            self._changed.notify_all()

    def enqueue_many(self, items: Iterable[T], timeout: float | None = None) -> None:
        """Put items one by one: each waits for room, at most ``timeout`` seconds."""
        for item in items:
            self.enqueue(item, timeout)

    def close(self, cancel_pending: bool = False) -> None:
        """Nothing can be put any more.  What is there can be taken, unless ``cancel_pending``."""
        with self._changed:
            self._is_closed = True
            if cancel_pending:
                self._items.clear()
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Close it with an error of the producer's, which consumers get after what is there."""
        with self._changed:
            if not self._is_closed:
                self._is_closed, self._error = True, error
            self._changed.notify_all()

    # -- consumers

    def dequeue(self, timeout: float | None = None) -> T:
        """Take an item, when there is one.

        Raises ``ClosedQueueError`` where the queue is closed and empty (the producer's error, where
        it has failed), and ``TimeoutError`` after so many seconds.
        """
        with self._changed:
            self._wait(lambda: self._is_closed or self._is_ready(), timeout)
            if not self._items:
                if self._error is not None:
                    raise self._error
                raise ClosedQueueError("the queue is closed, and nothing is left there")
            item = self._take()
            self._changed.notify_all()
            return item

    def wait(self, timeout: float) -> bool:
        """Whether there is an item, or the queue is closed, within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed or self._is_ready(), timeout)

    def dequeue_many(self, count: int, timeout: float | None = None) -> list[T]:
        """Take so many items, fewer where the queue is closed; raises as `dequeue` where none is
        left."""
        taken = [self.dequeue(timeout)]
        while len(taken) < count:
            try:
                taken.append(self.dequeue(timeout))
            except ClosedQueueError:
                break
        return taken

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                item = self.dequeue()
            except ClosedQueueError:
                return
            yield item

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be put any more."""
        return self._is_closed

    def _is_ready(self) -> bool:
        return bool(self._items)

    def _take(self) -> T:
        return self._items.popleft()

    def _wait(self, until: Any, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        while not until():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"the queue has been {'full' if self._items else 'empty'} for "
                                   f"{timeout} s")
            self._changed.wait(left)


class ShufflingQueue(FIFOQueue[T]):
    """A queue whose items are taken in random order, by a generator of this seed.

    ``min_after_dequeue``: so many items have to stay, for a choice, until the queue is closed.
    """

    def __init__(self, capacity: int, min_after_dequeue: int = 0, seed: int = 0) -> None:
        super().__init__(capacity)
        if not 0 <= min_after_dequeue < capacity:
            raise user_error(
                ValueError, "a queue that keeps as many items as it has room for gives none",
                cure="a larger capacity, or a smaller min_after_dequeue",
                values=[("capacity", capacity), ("min_after_dequeue", min_after_dequeue)])
        self.min_after_dequeue = min_after_dequeue
        self._generator = np.random.default_rng(seed)

    def _is_ready(self) -> bool:
        return len(self._items) > self.min_after_dequeue

    def _take(self) -> T:
        place = int(self._generator.integers(len(self._items)))
        self._items[place], self._items[-1] = self._items[-1], self._items[place]
        return self._items.pop()
