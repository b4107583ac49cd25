"""A step whose devices are of several processes, as the process sees it that makes the call.

One request to run goes to each worker, with the values that are there at the start; workers send
values to each other, and here those that this process reads.  The step ends when every worker has
said that it has done its part.  New values of Variables are kept apart until the step has ended
everywhere (`StepOverWorkers.commit`): a step that fails anywhere assigns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from fusec.codegen.plan.plan_over_devices import Action
from fusec.core.records import dataclass
from fusec.ir.device_names import DeviceName

from ..partitions.rendezvous import Key
from ..partitions.step import Step
from ..partitions.step_program import StepProgram
from ..partitions.task_runs import TaskError
from ..partitions.transfers import Sent
from .remote_device import WorkerLink
from .worker_plans import WorkerPart, process_of

_FIRST = -1  # the position of what is no error of the program


class RemoteTaskError(TaskError):
    """A task of a worker has failed; ``told`` is what the worker says of it."""

    def __init__(self, told: str) -> None:
        super().__init__()
        self.told = told


@dataclass
class RunRequest:
    """What a worker is asked to run: its part, the numbers of its Variables by input, and the
    values of those that it has not the present one of."""

    link: WorkerLink
    part: WorkerPart
    variables: dict[int, int]
    news: dict[int, Any]


class StepOverWorkers(Step):
    """See the module docstring."""

    def __init__(
        self, program: StepProgram, inputs: Sequence[Any], sizes: dict[str, int], frame: str,
        requests: Sequence[RunRequest],
    ) -> None:
        super().__init__(program, inputs, sizes, frame)
        self.requests = requests
        self._links = {r.link.task: r.link for r in requests}
        self._waiting = {*self._links}
        self._is_held = True

    # -- the caller

    def run(self) -> None:
        try:
            for request in self.requests:
                request.link.load(request.part.number, partial(getattr, request.part, "text"))
                request.link.begin(self.number, self)
            super().run()
        except BaseException:
            self._abort()
            raise
        finally:
            for request in self.requests:
                request.link.end(self.number)
        if self.failure is not None:
            self._abort()

    def _start(self) -> None:
        peers = {str(task): [link.incarnation, link.address]
                 for task, link in self._links.items()}
        for request in self.requests:
            numbers = [*request.news]
            request.link.post({
                "op": "run", "step": self.number, "program": request.part.number,
                "frame": self.frame, "sizes": self.sizes, "peers": peers,
                "variables": [*request.variables.items()], "news": numbers,
            }, [request.news[n] for n in numbers])
        with self._lock:
            first = [a for a, count in enumerate(self._waits) if not count]
            self._in_flight = len(first) + 1 + self._is_held
        for number in first:
            self._issue(number)
        self._ended(())

    def commit(self) -> None:
        """Have workers keep what they assigned; after the step has ended everywhere."""
        for request in self.requests:
            if request.part.writes:
                request.link.post({"op": "commit", "step": self.number})

    def _abort(self) -> None:
        for request in self.requests:
            request.link.post({"op": "abort", "step": self.number})

    # -- what workers say

    def arrived(self, worker: WorkerLink, message: Mapping[str, Any]) -> None:
        """A value of a worker's."""
        key = Key(message["source"], worker.incarnation, message["target"], message["key"],
                  self.number, self.frame)
        sent = Sent(tuple(message["values"]), message["cut"], "host")
        self.sizes.update(message.get("sizes") or {})
        self.rendezvous.send(key, sent)

    def ended(self, worker: WorkerLink, failure: Mapping[str, Any] | None) -> None:
        """A worker has done its part; the last one ends the wait."""
        if failure is not None:
            self._fail(RemoteTaskError(failure["told"]), failure["position"])
        with self._lock:
            self._waiting.discard(worker.task)
            is_last = not self._waiting
        if is_last:
            self._let_go()

    def broken(self, worker: WorkerLink, error: Exception) -> None:
        """A worker will not answer."""
        self._fail(error, _FIRST)

    def _fail(self, error: BaseException, position: int) -> None:
        super()._fail(error, position)
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            was_held, self._is_held = self._is_held, False
        if was_held:
            self._ended(())

    # -- transfers

    def _key(self, action: Action, source: str, target: str) -> Key:
        key = super()._key(action, source, target)
        task = _task_of(source)
        return key if task < 0 else key._replace(incarnation=self._links[task].incarnation)

    def _deliver(self, key: Key, sent: Sent) -> None:
        task = _task_of(key.target)
        if task < 0:
            super()._deliver(key, sent)
            return
        self._links[task].post({
            "op": "value", "step": key.step, "source": key.source, "target": key.target,
            "key": key.value, "frame": key.frame, "cut": sent.is_cut, "sizes": self.sizes,
        }, sent.values)


@lru_cache(4096)
def _task_of(device: str) -> int:
    """The task of the worker that a device is of; -1: of this process."""
    return process_of(DeviceName.parse(device))


__all__ = ["RemoteTaskError", "RunRequest", "StepOverWorkers"]
