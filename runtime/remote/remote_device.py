"""Devices of workers, and what a step asks of one: nothing here knows how messages travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from fusec.core.program_errors import WorkerLostError
from fusec.ir.device_names import DeviceName

from ..devices.device import Device

JOB = "worker"


class RemoteDevice(Device):
    """A device of the worker of that task.  ``cores`` are how many it has, for placement;
    ``nbytes`` is its memory, 0: not known."""

    def __init__(self, task: int, type_: str, threads: int, nbytes: int) -> None:
        super().__init__(DeviceName(JOB, task, type_, 0))
        self.threads, self.nbytes = threads, nbytes
        self.backend, self.memory = "cpu", f"worker {task}"  # the worker says what runs on its GPU

    @property
    def is_remote(self) -> bool:
        return True

    @property
    def is_automatic(self) -> bool:
        return False

    @property
    def runs_kernels_alone(self) -> bool:
        """What its kernels cannot do the worker does on its own CPU."""
        return False

    def memory_bytes(self) -> int:
        return self.nbytes


class RunningStep(Protocol):
    """A step of this process that waits for workers; called by the thread that reads messages."""

    def arrived(self, worker: WorkerLink, message: Mapping[str, Any]) -> None:
        """A value that the worker has sent."""

    def ended(self, worker: WorkerLink, failure: Mapping[str, Any] | None) -> None:
        """The worker has done its part, or has failed in it."""

    def broken(self, worker: WorkerLink, error: Exception) -> None:
        """The worker will not answer any more."""


class WorkerLink(Protocol):
    """The connection to one worker.  Messages are taken in the order in which they are posted."""

    task: int
    incarnation: int
    address: str
    title: str  # of the worker, for people

    def check(self) -> None:
        """Raise `WorkerLostError` if it is closed."""

    def load(self, number: int, make: Callable[[], str]) -> None:
        """Have the worker know a program, unless it does."""

    def forget_program(self, number: int) -> None:
        """Nobody runs it any more."""

    def begin(self, step: int, running: RunningStep) -> None:
        """Tell ``running`` what comes for the step, until `end`."""

    def end(self, step: int) -> None:
        """Nothing that comes for the step is of use any more."""

    def post(self, message: Mapping[str, Any], values: Sequence[Any] = ()) -> None:
        """Send a message, and values with it; does not wait."""

    def number_of(self, occupancy: Any) -> int:
        """The number of a Variable there."""

    def fetch(self, number: int) -> np.ndarray:
        """The value of a Variable; waits for it."""


class _Workers:
    """The workers of the present cluster, by task."""

    links: Mapping[int, WorkerLink] = {}


def use_workers(links: Mapping[int, WorkerLink]) -> None:
    """These are the workers from now on."""
    _Workers.links = links


def worker_tasks() -> tuple[int, ...]:
    """The tasks of the present cluster's workers; () where there is none."""
    return tuple(sorted(_Workers.links))


def worker_of(task: int) -> WorkerLink:
    """The connection to a worker; raises `WorkerLostError` where there is none."""
    link = _Workers.links.get(task)
    if link is None:
        raise WorkerLostError(
            f"there is no worker /job:{JOB}/task:{task} any more", cure="fusec.cluster(client)",
            values=[("workers", len(_Workers.links))])
    link.check()
    return link
