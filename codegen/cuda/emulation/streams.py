"""Streams: a device's work is done later, in some order that is allowed."""

from __future__ import annotations

import random
from collections import deque

from fusec.core import locks

from .work import EmulatedWork


class Event(EmulatedWork):
    """A moment of a stream: the stream's work before it has been done."""

    def __init__(self) -> None:
        self.is_done = False

    def __call__(self) -> None:
        self.is_done = True


class _Wait(EmulatedWork):
    """Of a stream for an event."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __call__(self) -> None:
        assert self.event.is_done


class Streams:
    """Queues of work, done when somebody waits: in each queue in order, between queues in an order
    that is drawn anew each time, so that missing dependences are found.

    With the seed 0 the queue that was asked first does its work first.

    Interrupts of work are raised by `synchronize`, and may have nothing to do with it: the work of
    several callers is done by the first of them that waits.  So it stays the first to be done, and
    is begun again, or given up where nobody reads its results any more.
    """

    def __init__(self, seed: int = 0) -> None:
        self.reseed(seed)
        self._working = locks.Lock()  # by who does the work; to ask needs no waiting
        self._queues: dict[int, deque[EmulatedWork]] = {}
        self._begun: tuple[deque[EmulatedWork], EmulatedWork] | None = None

    def reseed(self, seed: int) -> None:
        """Draw orders from another seed."""
        self._random = random.Random(seed) if seed else None

    def ask(self, work: EmulatedWork, stream: int = 0) -> None:
        """Let the stream do this after its earlier work."""
        self._queues.setdefault(stream, deque()).append(work)

    def record(self, stream: int = 0) -> Event:
        """The moment when the stream has done its work until now."""
        event = Event()
        self.ask(event, stream)
        return event

    def wait(self, event: Event, stream: int = 0) -> None:
        """Let the stream do nothing more before the event."""
        self.ask(_Wait(event), stream)

    def __len__(self) -> int:
        """How much has been asked for and is not done."""
        return sum(len(queue) for queue in self._queues.values())

    def synchronize(self, until: Event | None = None) -> None:
        """Do all of it; or some, the event's stream until the event at least, and of other streams
        the work that it waits for: with the seed 0 nothing else, with others more, or not."""
        with self._working:
            if until is None:
                self._give_up_what_is_useless()
            draw = self._random
            least = until if draw is None or draw.random() < 0.5 else None
            while not (until and until.is_done) and (begun := self._first(least)) is not None:
                self._begun = begun
                queue, work = begun
                work()
                if queue and queue[0] is work:  # a signal's handler may have waited, too
                    queue.popleft()
                self._begun = None

    def _give_up_what_is_useless(self) -> None:
        """Of interrupted work: who asked for it has gone, else it would not have been."""
        begun, queues = self._begun, [queue for queue in self._queues.values() if queue]
        if begun is None or len(queues) != 1 or queues[0][0] is not begun[1]:
            return
        unread: set[int] = set()
        for work in reversed(list(queues[0])):
            if work.is_useless(unread):
                work.give_up()

    def _first(self, least: Event | None = None) -> tuple[deque[EmulatedWork], EmulatedWork] | None:
        """The next work: that which has begun, else the first of a queue that may go on, or of
        the one that this event waits for; None: there is nothing to do."""
        begun, queues = self._begun, [queue for queue in list(self._queues.values()) if queue]
        if begun is not None and begun[0] and begun[0][0] is begun[1]:
            return begun
        able = [queue for queue in queues if _may_go_on(queue[0])]
        if not able:
            assert not queues, "streams wait for each other"
            return None
        draw = self._random
        queue = able[0] if draw is None else draw.choice(able)
        if least is not None:
            queue = _towards(least, queues)
        return queue, queue[0]


def _towards(event: Event, queues: list[deque[EmulatedWork]]) -> deque[EmulatedWork]:
    """The queue whose first work the event waits for."""
    queue = next(queue for queue in queues if event in list(queue))
    first = queue[0]
    if isinstance(first, _Wait) and not first.event.is_done:
        return _towards(first.event, queues)
    return queue


def _may_go_on(work: EmulatedWork) -> bool:
    return not isinstance(work, _Wait) or work.event.is_done
