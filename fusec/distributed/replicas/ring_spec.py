"""A ring as an action of a worker's program: what travels of it, and one run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass

from .ring import JOINS, RingMember, SumRing

RING = "ring"  # the kind of action
_EXACT, _HALVES = "exact", "bfloat16"
TRANSFERS = (_EXACT, _HALVES)


@dataclass(frozen=True)
class RingSpec:
    """A sum over workers, of one of them.  ``name``: of its messages in a step; ``tasks``: of the
    members; ``width``: how many arrays each piece gives."""

    ring: SumRing
    name: str
    member: int
    tasks: tuple[int, ...]
    width: int

    def to_form(self) -> dict[str, Any]:
        """As plain data, which `read` reads."""
        ring = self.ring
        return {"name": self.name, "member": self.member, "tasks": self.tasks,
                "starts": ring.starts, "join": ring.join,
                "transfer": _HALVES if ring.is_lossy else _EXACT}

    @classmethod
    def read(cls, form: Mapping[str, Any], reads: int, writes: int) -> RingSpec:
        """The ring of an action that reads and writes so many values; raises ``ValueError`` for
        what is none."""
        starts, tasks = tuple(map(int, form["starts"])), tuple(map(int, form["tasks"]))
        member = int(form["member"])
        is_right = (
            len(starts) == len(tasks) + 1 and starts[0] == 0 and 0 <= member < len(tasks)
            and all(a < b for a, b in itertools.pairwise(starts))
            and form["join"] in JOINS and form["transfer"] in TRANSFERS
            and len({*tasks}) == len(tasks) and writes > 0
            and reads == writes * (starts[member + 1] - starts[member]))
        if not is_right:
            raise ValueError(f"a ring {form!r}")
        ring = SumRing(starts, str(form["join"]), form["transfer"] == _HALVES)
        return cls(ring, str(form["name"]), member, tasks, writes)

    @property
    def own_device(self) -> str:
        return self.device_of(self.member)

    def device_of(self, member: int) -> str:
        """The name of a member's device."""
        return device_of(self.tasks[member])

    def key(self, phase: str, message: int) -> str:
        """The name of a message within a step."""
        return f"{self.name}.{phase}.{message}"


def device_of(task: int) -> str:
    """The name of the device of a worker that computes for replicas."""
    return f"/job:worker/task:{task}/device:CPU:0"


class RingRun:
    """One run: the arrays of each piece as one vector, and the total as arrays again."""

    def __init__(self, spec: RingSpec, partials: Sequence[Any]) -> None:
        """``partials``: ``spec.width`` arrays of one dtype of the first piece, then of the next."""
        self.spec, width = spec, spec.width
        self._shapes = [np.shape(partial) for partial in partials[:width]]
        self.member = RingMember(spec.ring, spec.member, [
            np.concatenate([np.ravel(partial) for partial in partials[at:at + width]])
            for at in range(0, len(partials), width)])
        self._is_over = False

    def is_over(self) -> bool:
        """Whether the total is there; True once."""
        was_over, self._is_over = self._is_over, self.member.is_done
        return self._is_over and not was_over

    def results(self) -> list[Any]:
        """The total, in the shapes of a piece's arrays."""
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        parts = np.split(self.member.total, np.cumsum(sizes)[:-1])
        return [part[0] if shape == () else part.reshape(shape)
                for part, shape in zip(parts, self._shapes, strict=True)]


__all__ = ["RING", "TRANSFERS", "RingRun", "RingSpec", "device_of"]
