"""Launches that follow each other, with nothing of the host's between them, asked for as one.

A loop launches the same kernels at the same addresses again and again: with arrays that change
places, every second iteration.  What a queue is given is held back until the host has to look, or
copies something, or `MOST` launches wait; a sequence that has come before is then one graph of the
driver's (a CUDA graph), where that has graphs.  Before another the host waits for the last but one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.core import timeline
from fusec.core.records import dataclass, field

from ..driver.driver import Driver

Launch = Callable[[], None]
MOST, ENOUGH = 128, 48  # launches of one graph; of one that ends with an iteration
FEWEST = 3  # launches that are worth a graph
MOST_UNDER_WAY = 2  # sequences that the host is ahead of the device: who interrupts waits for them
MOST_LATE_US = 100_000  # from an interruption to the end of the launches asked for until then
# Bytes moved in a microsecond, and operations of a product: fewer than an H200's.
_BYTES, _OPERATIONS = 3e6, 2e7
_USES = 2  # of a sequence, the last of which makes the graph
_REMEMBERED = 32  # sequences of a program


def most_at_once(longest_us: float) -> int:
    """Launches of a sequence, the longest of which takes so long: enough are done in time."""
    return max(1, min(MOST, int(MOST_LATE_US / (MOST_UNDER_WAY + 1) / max(longest_us, 1.0))))


def launch_us(nbytes: int, operations: int = 0) -> float:
    """At most what a launch takes that moves, or computes, so much."""
    return max(nbytes / _BYTES, operations / _OPERATIONS)


@dataclass
class _Sequence:
    uses: int = 0
    joined: Launch | None = None


@dataclass
class JoinedLaunches:
    """The sequences of one program, in all its calls."""

    driver: Driver
    known: dict[tuple[Launch, ...], _Sequence] = field(default_factory=dict)

    def ask(self, launches: tuple[Launch, ...]) -> None:
        """Ask for these launches."""
        joined = self._joined(launches) if len(launches) >= FEWEST and not timeline.on else None
        for launch in launches if joined is None else (joined,):
            launch()

    def _joined(self, launches: tuple[Launch, ...]) -> Launch | None:
        """One for all, where they have come before."""
        found = self.known.get(launches)
        if found is None:
            if len(self.known) >= _REMEMBERED:
                self.known.clear()
            found = self.known[launches] = _Sequence()
        found.uses += 1
        if found.uses == _USES:
            found.joined = self.driver.joined(launches)
        return found.joined


class LaunchQueue:
    """The launches of one call that nobody has asked the driver for yet, at most ``most``."""

    def __init__(self, joined: JoinedLaunches) -> None:
        self._joined, self.most = joined, MOST
        self._waiting: list[Launch] = []
        self._turns = 0  # since the last flush
        self._marks: list[Any] = []  # behind the sequences that may be under way

    def turn(self) -> None:
        """An iteration ends: sequences of an even number of them are the same again sooner."""
        self._turns += 1
        if len(self._waiting) >= min(ENOUGH, self.most) and self._turns % 2 == 0:
            self._go_on()

    def add(self, launches: Sequence[Launch]) -> None:
        self._waiting += launches
        if len(self._waiting) >= self.most:
            self._go_on()

    def _go_on(self) -> None:
        self.flush()
        self._marks.append(self._joined.driver.mark())

    def flush(self) -> None:
        """Ask for what waits."""
        if len(self._marks) >= MOST_UNDER_WAY:
            self._joined.driver.reach(self._marks.pop(0))
        waiting, self._waiting, self._turns = tuple(self._waiting), [], 0
        if waiting:
            self._joined.ask(waiting)
