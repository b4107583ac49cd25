"""Streams: what a device is asked to do is done later, in some order that is allowed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from fusec import locks

Work = Callable[[], object]


class Event:
    """A moment of a stream: what was asked of the stream before has been done."""

    def __init__(self) -> None:
        self.is_done = False


class Streams:
    """Queues of work, done when somebody waits: in each queue in order, between queues in an order
    that is drawn anew each time, so that what relies on another is found.

    With the seed 0 the queue that was asked first does its work first.  Work must not raise.
    """

    def __init__(self, seed: int = 0) -> None:
        self.reseed(seed)
        self._lock = locks.Lock()
        self._queues: dict[int, deque[Work | tuple[Event]]] = {}

    def reseed(self, seed: int) -> None:
        """Draw orders from another seed."""
        self._random = random.Random(seed) if seed else None

    def ask(self, work: Work, stream: int = 0) -> None:
        """Let the stream do this after what it was asked before."""
        with self._lock:
            self._queues.setdefault(stream, deque()).append(work)

    def record(self, stream: int = 0) -> Event:
        """The moment when the stream has done what it was asked until now."""
        event = Event()

        def done() -> None:
            event.is_done = True

        self.ask(done, stream)
        return event

    def wait(self, event: Event, stream: int = 0) -> None:
        """Let the stream do nothing more before the event."""
        with self._lock:
            self._queues.setdefault(stream, deque()).append((event,))

    def __len__(self) -> int:
        """How much has been asked for and is not done."""
        return sum(len(queue) for queue in self._queues.values())

    def synchronize(self) -> None:
        """Do all of it."""
        with self._lock:
            while (queue := self._next()) is not None:
                work = queue.popleft()
                if callable(work):
                    work()

    def _next(self) -> deque[Work | tuple[Event]] | None:
        """A queue whose first piece may be done now; None: there is nothing to do."""
        able = [queue for queue in self._queues.values() if queue and _may_go_on(queue[0])]
        if not able:
            assert not any(self._queues.values()), "streams wait for each other"
            return None
        return able[0] if self._random is None else self._random.choice(able)


def _may_go_on(work: Work | tuple[Event]) -> bool:
    return work[0].is_done if isinstance(work, tuple) else True
