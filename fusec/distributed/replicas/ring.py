"""The sum of the vectors of all pieces of a batch, in one stated order, over a ring of workers.

A vector has as many *segments* as the batch has pieces.  Segment ``j`` is added up from both ends
towards piece ``j``::

    ((p[0] + p[1]) + ... + p[j])  +  ((p[n-1] + p[n-2]) + ... + p[j+1])

which says nothing of workers: each has neighbouring pieces, and adds them to the sums that come
from both sides.  A segment's owner, the worker that has piece ``j``, adds both ends up.  Then
totals go around the ring.  So a worker sends each element once on its way to the owner, unless it
is that, and once as a total, unless the next worker is the owner: with equal shares of the pieces
``2 (n - 1) / n`` of the vector, the least there is (P. Patarasuk and X. Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69 (2009)).

Nothing here knows how messages travel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fusec.core.records import dataclass

MESSAGE_BYTES = 1 << 20  # the most that one message carries
UP, DOWN, TOTAL = "up", "down", "total"  # towards the owner, from both ends; and around the ring
JOINS: Mapping[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "or": np.logical_or, "and": np.logical_and,
}


class RingMessage(NamedTuple):
    """Neighbouring elements of one owner."""

    owner: int
    start: int
    stop: int


class RingTransfer(NamedTuple):
    """A message on its way to another member."""

    phase: str
    number: int
    target: int
    values: np.ndarray


@dataclass(frozen=True)
class SumRing:
    """Who adds up what: member ``k`` has the pieces from ``starts[k]`` to ``starts[k + 1]``."""

    starts: tuple[int, ...]
    join: str = "add"
    is_lossy: bool = False  # float32 travels as bfloat16

    @property
    def members(self) -> int:
        return len(self.starts) - 1

    @property
    def pieces(self) -> int:
        return self.starts[-1]

    def bounds(self, size: int) -> list[int]:
        """Where each segment of a vector begins, and the end."""
        return [j * size // self.pieces for j in range(self.pieces + 1)]

    def is_cut(self, dtype: np.dtype) -> bool:
        """Whether numbers of that dtype lose their lower halves."""
        return self.is_lossy and dtype == np.float32

    def messages(self, size: int, dtype: np.dtype) -> list[RingMessage]:
        """The messages of a vector: none holds elements of two owners."""
        bounds = self.bounds(size)
        most = max(MESSAGE_BYTES // (2 if self.is_cut(dtype) else dtype.itemsize), 1)
        shares = itertools.pairwise(bounds[piece] for piece in self.starts)
        return [RingMessage(owner, start, min(start + most, after))
                for owner, (first, after) in enumerate(shares)
                for start in range(first, after, most)]


class RingMember:
    """One member's part in one sum.  ``pieces``: its vectors, in order, which nothing changes.

    `begin` gives the messages that it sends at once, `take` those that one which has come makes it
    send; ``expected`` are all that will come: phase, number, and from whom.
    """

    def __init__(self, ring: SumRing, member: int, pieces: Sequence[np.ndarray]) -> None:
        self.ring, self.member, self.pieces = ring, member, pieces
        self.total = np.empty_like(pieces[0])
        self.sent_bytes = 0
        self._is_cut = ring.is_cut(self.total.dtype)
        self._join = JOINS[ring.join]
        self._bounds = ring.bounds(self.total.size)
        self._messages = ring.messages(self.total.size, self.total.dtype)
        self._missing = len(self._messages)
        self._ends: dict[tuple[str, int], np.ndarray] = {}  # of its own messages, from both sides

    @property
    def is_done(self) -> bool:
        """Whether ``total`` is."""
        return not self._missing

    @property
    def expected(self) -> Iterator[tuple[str, int, int]]:
        last, me = self.ring.members - 1, self.member
        for number, message in enumerate(self._messages):
            if me > 0 and message.owner >= me:
                yield UP, number, me - 1
            if me < last and message.owner <= me:
                yield DOWN, number, me + 1
            if message.owner != me:
                yield TOTAL, number, (me - 1) % (last + 1)

    def begin(self) -> Iterator[RingTransfer]:
        """Both ends begin; who is alone is done with that."""
        last, me = self.ring.members - 1, self.member
        for number, message in enumerate(self._messages):
            if me == 0 and message.owner > 0:
                yield self._transfer(UP, number, 1, self._folded(None, message, self.pieces))
            if me == last and message.owner < last:
                yield self._transfer(
                    DOWN, number, last - 1, self._folded(None, message, self.pieces[::-1]))
            if last == 0:
                yield from self._finished(number, message)

    def take(self, phase: str, number: int, sent: np.ndarray) -> Iterator[RingTransfer]:
        """A message has come; its memory is this member's from now on."""
        message = self._messages[number]
        values = _whole(sent) if self._is_cut else sent
        if phase == TOTAL:
            yield from self._passed_on(number, message, values)
        elif message.owner == self.member:
            self._ends[phase, number] = values
            if len({UP, DOWN} & {p for p, n in self._ends if n == number}) == self._neighbours:
                yield from self._finished(number, message)
        elif phase == UP:
            yield self._transfer(
                UP, number, self.member + 1, self._folded(values, message, self.pieces))
        else:
            yield self._transfer(
                DOWN, number, self.member - 1, self._folded(values, message, self.pieces[::-1]))

    @property
    def _neighbours(self) -> int:
        return (self.member > 0) + (self.member < self.ring.members - 1)

    def _folded(
        self, values: np.ndarray | None, message: RingMessage, pieces: Sequence[np.ndarray]
    ) -> np.ndarray:
        """The pieces, one after the other, joined to the values; in their place."""
        part, rest = slice(message.start, message.stop), iter(pieces)
        result = next(rest)[part].copy() if values is None else values
        with np.errstate(all="ignore"):
            for piece in rest:
                self._join(result, piece[part], out=result)
        return result

    def _finished(self, number: int, message: RingMessage) -> Iterator[RingTransfer]:
        """Both ends of an own message are there: its total, segment by segment."""
        up, down = (self._ends.pop((phase, number), None) for phase in (UP, DOWN))
        first, after = self.ring.starts[self.member:self.member + 2]
        for j in range(first, after):
            start = max(self._bounds[j], message.start)
            stop = min(self._bounds[j + 1], message.stop)
            if start < stop:
                part = RingMessage(message.owner, start, stop)
                at = slice(start - message.start, stop - message.start)
                middle = j - first + 1
                total = self._folded(None if up is None else up[at], part, self.pieces[:middle])
                above = self.pieces[middle:][::-1]
                if down is not None or above:
                    end = self._folded(None if down is None else down[at], part, above)
                    with np.errstate(all="ignore"):
                        self._join(total, end, out=total)
                self.total[start:stop] = _whole(_halves(total)) if self._is_cut else total
        yield from self._passed_on(
            number, message, self.total[message.start:message.stop].copy(), is_own=True)

    def _passed_on(
        self, number: int, message: RingMessage, values: np.ndarray, is_own: bool = False
    ) -> Iterator[RingTransfer]:
        """A total is known here; the next member gets it, unless it has made it."""
        if not is_own:
            self.total[message.start:message.stop] = values
        self._missing -= 1
        following = (self.member + 1) % self.ring.members
        if following != message.owner:
            yield self._transfer(TOTAL, number, following, values)

    def _transfer(self, phase: str, number: int, target: int, values: np.ndarray) -> RingTransfer:
        sent = _halves(values) if self._is_cut else values
        self.sent_bytes += sent.nbytes
        return RingTransfer(phase, number, target, sent)


def _halves(values: np.ndarray) -> np.ndarray:
    """float32 as bfloat16, rounded to nearest, ties to even; a NaN stays one."""
    bits = values.view(np.uint32)
    rounded = (bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))) >> (
        np.uint32(16))
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def _whole(halves: np.ndarray) -> np.ndarray:
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


__all__ = ["JOINS", "MESSAGE_BYTES", "RingMember", "RingTransfer", "SumRing"]
