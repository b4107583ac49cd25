"""Where the threads of a persistent kernel have to wait for each other.

A barrier is needed before a read of memory that was written since the last one, and before a write
to memory that was read or written.  A loop's iteration begins with the accesses that the last one
ended with, too: these are found by printing the program until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusec.core.records import dataclass

Key = Any  # of memory: equal where two may be the same
ON_CHIP: Key = "shared memory"  # of a block, whose threads alone have to wait


@dataclass(frozen=True)
class PendingAccesses:
    """What was read and written since the last barrier."""

    read: frozenset[Key] = frozenset()
    written: frozenset[Key] = frozenset()

    def __or__(self, other: PendingAccesses) -> PendingAccesses:
        return PendingAccesses(self.read | other.read, self.written | other.written)

    def conflicts(self, read: Iterable[Key], written: Iterable[Key]) -> set[Key]:
        """The memory because of which an access with these has to wait."""
        writes = set(written)
        return {*(self.written & {*read, *writes}), *(self.read & writes)}


NOTHING = PendingAccesses()


class Hazards:
    """The accesses since a barrier, while a program is printed; ``entries``: those that loops begin
    with, by their order in the text; ``is_stable``: whether those were right."""

    def __init__(self, entries: dict[int, PendingAccesses] | None = None) -> None:
        self.now = NOTHING
        self.entries = {} if entries is None else entries
        self.is_stable = True
        self.suspended = False  # accesses that are known to be apart
        self._loops = 0

    def wait_for(self, read: Iterable[Key], written: Iterable[Key]) -> str:
        """Before an access: "" where nobody has to wait, else "block" or "grid"."""
        read, written = frozenset(read), frozenset(written)
        found: set[Key] = set() if self.suspended else self.now.conflicts(read, written)
        scope = "" if not found else "block" if found == {ON_CHIP} else "grid"
        if scope == "grid":
            self.now = NOTHING
        elif scope:
            self.now = PendingAccesses(self.now.read - {ON_CHIP}, self.now.written - {ON_CHIP})
        self.now |= PendingAccesses(read, written)
        return scope

    def begin_loop(self) -> int:
        """Its number, for `end_loop`."""
        number, self._loops = self._loops, self._loops + 1
        self.now = self.entries[number] = self.entries.get(number, NOTHING) | self.now
        return number

    def end_loop(self, number: int) -> None:
        """An iteration is over."""
        known = self.entries[number] | self.now
        self.is_stable &= known == self.entries[number]
        self.entries[number] = known
