"""Variables of which every worker has the value: replicas, which one step writes alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.occupancy import VERSION, Hold, Occupancy, Use
from fusec.core.program_errors import WorkerLostError
from fusec.core.records import dataclass
from fusec.runtime.devices.variable_copies import current_value

from .remote_device import WorkerLink
from .runs_over_workers import worker_key
from .step_over_workers import RunRequest


class HoldOfReplicas(Hold):
    """A hold of Variables whose values stay where they are."""

    def _begin(self, uses: Sequence[Use]) -> None:
        for use, writes in uses:
            if writes:
                use.renew()


@dataclass
class ReplicatedValue:
    """A value that several workers have, each under a number of its own."""

    places: Sequence[tuple[WorkerLink, int]]
    version: int
    buffer: np.ndarray

    def fetch(self) -> None:
        """See `fusec.core.occupancy.Away`: of the first worker that answers; raises
        `WorkerLostError` where none does."""
        for at, (link, number) in enumerate(self.places):
            try:
                np.copyto(self.buffer, link.fetch(number))
                return
            except WorkerLostError:
                if at == len(self.places) - 1:
                    raise

    def of_version(self, version: int) -> ReplicatedValue:
        """The same, of another version."""
        self.version = version
        return self


def news_of(
    link: WorkerLink, numbers: Mapping[int, int], occupancies: Sequence[Occupancy],
    buffers: Sequence[np.ndarray],
) -> dict[int, Any]:
    """The values that a worker has not, by their numbers there."""
    news = {}
    for i, number in numbers.items():
        if current_value(occupancies[i], worker_key(link)) is None:
            occupancies[i].come_home()
            news[number] = buffers[i]
    return news


def note_replicas(
    occupancy: Occupancy, buffer: np.ndarray, requests: Sequence[RunRequest], at: int,
    is_written: bool,
) -> None:
    """After a step: every worker has the value, which stays there where it was written."""
    places = [(request.link, request.variables[at]) for request in requests]
    if is_written:
        occupancy.copies.clear()
    elif not any(request.variables[at] in request.news for request in requests):
        return
    value = ReplicatedValue(places, int(occupancy.facts[VERSION]), buffer)
    for link, _ in places:
        occupancy.copies[worker_key(link)] = value
    if is_written:
        occupancy.leave_home(value)


__all__ = ["HoldOfReplicas", "ReplicatedValue", "news_of", "note_replicas"]
