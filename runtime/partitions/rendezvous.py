"""Where sends and receives meet, whichever comes first.

A key, after section 5.3 of the TensorFlow paper: the sending
device and its incarnation (a random number of its process), the receiving one, the value, the step,
and in loops the frame with its iteration.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from fusec.core import locks

Taken = Callable[[Any], None]


class Process:
    """This process: sends of another one of the same name and task are not taken for its."""

    incarnation = 0

    @classmethod
    def begin(cls) -> None:
        cls.incarnation = int.from_bytes(os.urandom(7))


Process.begin()


class Key(NamedTuple):
    """The value sent, from where, to where, in which step."""

    source: str
    incarnation: int
    target: str
    value: str
    step: int
    frame: str = ""


class Meeting:
    """The values that one step has sent, and the receives that wait."""

    def __init__(self) -> None:
        self.sent: dict[Key, Any] = {}
        self.waiting: dict[Key, Taken] = {}


class Rendezvous:
    """Values that were sent and receives that wait, by key.  Thread-safe.

    Values for a step that has ended, or was cancelled, are dropped.
    """

    def __init__(self) -> None:
        self._lock = locks.Lock()
        self._steps: dict[int, Meeting] = {}

    def begin(self, step: int) -> None:
        """Take this step's sends, until it is forgotten."""
        self._steps[step] = Meeting()

    def send(self, key: Key, value: Any) -> None:
        """Hand the value to the receive with the same key, now or when it comes."""
        with self._lock:
            meeting = self._steps.get(key.step)
            taken = None if meeting is None else meeting.waiting.pop(key, None)
            if taken is None and meeting is not None:
                meeting.sent[key] = value
        if taken is not None:
            taken(value)

    def receive(self, key: Key, taken: Taken) -> None:
        """Call ``taken`` with the value: at once if it is there, else in the sender's thread."""
        with self._lock:
            meeting = self._steps.get(key.step)
            if meeting is None:
                return
            if key not in meeting.sent:
                meeting.waiting[key] = taken
                return
            value = meeting.sent.pop(key)
        taken(value)

    def forget(self, step: int) -> None:
        """Drop the rest of a step: values that nobody took and receives that wait."""
        self._steps.pop(step, None)

    def clear(self) -> None:
        """In a forked child: steps in flight are the parent's."""
        self._steps = {}

    def __len__(self) -> int:
        """How many steps are in flight."""
        return len(self._steps)


RENDEZVOUS = Rendezvous()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RENDEZVOUS.clear)
    os.register_at_fork(after_in_child=Process.begin)
