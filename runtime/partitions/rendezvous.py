"""Where sends and receives meet, whichever comes first.

A key says what is sent in which step, after section 5.3 of the TensorFlow paper: the sending
device and its incarnation (how often it was made), the receiving one, the value, the step, and in
loops the frame with its iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fusec import locks

Taken = Callable[[Any], None]


class Key(NamedTuple):
    """What is sent, from where, to where, in which step."""

    source: str
    incarnation: int
    target: str
    value: str
    step: int
    frame: str = ""


class Rendezvous:
    """Values that were sent and receives that wait, by key.  Thread-safe."""

    def __init__(self) -> None:
        self._lock = locks.Lock()
        self._sent: dict[Key, Any] = {}
        self._waiting: dict[Key, Taken] = {}

    def send(self, key: Key, value: Any) -> None:
        """Hand the value to the receive with the same key, now or when it comes."""
        with self._lock:
            taken = self._waiting.pop(key, None)
            if taken is None:
                self._sent[key] = value
        if taken is not None:
            taken(value)

    def receive(self, key: Key, taken: Taken) -> None:
        """Call ``taken`` with the value: at once if it is there, else in the sender's thread."""
        with self._lock:
            if key not in self._sent:
                self._waiting[key] = taken
                return
            value = self._sent.pop(key)
        taken(value)

    def forget(self, step: int) -> None:
        """Drop what a step has left: values that nobody took and receives that wait."""
        with self._lock:
            for table in (self._sent, self._waiting):
                for key in [k for k in table if k.step == step]:
                    del table[key]

    def __len__(self) -> int:
        """How many values and receives are in it."""
        with self._lock:
            return len(self._sent) + len(self._waiting)


RENDEZVOUS = Rendezvous()
