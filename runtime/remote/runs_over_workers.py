"""Calls of a plan that workers have a part in: Variables that live there, and errors."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.plan.plan_over_devices import PlanOverDevices
from fusec.core.occupancy import VERSION, Hold, Occupancy, Use
from fusec.core.records import dataclass
from fusec.errors import FusecError
from fusec.runtime.call_spec import CallSpec, spec_of
from fusec.runtime.devices.variable_copies import current_value
from fusec.runtime.failed_checks import numpy_error

from ..partitions.plan import PartitionedExecutable, PartitionedPlan, step_program
from ..partitions.step_program import Failure, Times
from .remote_device import WorkerLink, worker_of
from .step_over_workers import RemoteTaskError, RunRequest, StepOverWorkers
from .worker_plans import WorkerPart


@dataclass
class RemoteValue:
    """The value of a Variable at a worker.  ``buffer`` is the Variable's memory here."""

    link: WorkerLink
    number: int
    version: int
    buffer: np.ndarray

    def fetch(self) -> None:
        """See `fusec.core.occupancy.Away`; raises `WorkerLostError` where it is lost."""
        np.copyto(self.buffer, self.link.fetch(self.number))

    def of_version(self, version: int) -> RemoteValue:
        """The same, of another version."""
        self.version = version
        return self


class _HoldOverWorkers(Hold):
    """A hold of a plan's Variables; the values of some stay with workers."""

    def __init__(self, uses: Sequence[Use], staying: set[int]) -> None:
        super().__init__(uses)
        self.staying = staying  # ids of occupancies

    def _begin(self, uses: Sequence[Use]) -> None:
        for use, writes in uses:
            if id(use) not in self.staying:
                use.come_home()
            elif writes:
                use.renew()


class ExecutableOverWorkers(PartitionedExecutable):
    """A graph compiled for devices of several processes."""

    def __init__(self, call_plan: PlanOverDevices, spec: CallSpec) -> None:
        there = {i for part in call_plan.remote for i in part.variables}
        self._staying = {id(of) for number, of in spec.variables if number in there}
        super().__init__(call_plan, spec)
        for part in call_plan.remote:
            weakref.finalize(self, forget_program, part.task, part.number)

    @staticmethod
    def of_graph(call_plan: PlanOverDevices) -> PlanOverWorkers:
        return PlanOverWorkers(
            call_plan, spec := spec_of(call_plan.graph), step_program(call_plan, spec),
            call_plan.graph.name)

    def _hold(self) -> contextlib.AbstractContextManager[None]:
        return _HoldOverWorkers(self.spec.holds, self._staying) if self._staying else (
            super()._hold())

    def _new_instance(self, one_by_one: bool = False) -> Any:
        assert isinstance(self.call_plan, PlanOverDevices)
        return PlanOverWorkers(self.call_plan, self.spec, self.program)


def forget_program(task: int, number: int) -> None:
    """Have a worker drop a program, where there still is one."""
    with contextlib.suppress(FusecError):
        worker_of(task).forget_program(number)


class PlanOverWorkers(PartitionedPlan):
    """One call at a time of such a plan."""

    _step: StepOverWorkers | None = None

    def _run_step(
        self, inputs: Sequence[Any], sizes: dict[str, int], times: Times | None
    ) -> tuple[Failure | None, list[Any]]:
        requests = [self._request(part, inputs) for part in self.call_plan.remote]
        self._step = step = StepOverWorkers(
            self.program, inputs, sizes, self._frame(), requests)
        self.last_step = step
        step.run()
        failure, values = step.failure, step.values
        step.close()
        if failure is None:
            self._note_copies(requests, inputs)
        return failure, values

    def _request(self, part: WorkerPart, inputs: Sequence[Any]) -> RunRequest:
        link = worker_of(part.task)
        numbers = {i: link.number_of(self.variables[i]) for i in part.variables}
        news = {number: inputs[i] for i, number in numbers.items()
                if current_value(self.variables[i], worker_key(link)) is None}
        for i, number in numbers.items():
            if number in news:  # it may be at another worker, or lost
                self.variables[i].come_home()
        return RunRequest(link, part, numbers, news)

    def _note_copies(self, requests: Sequence[RunRequest], inputs: Sequence[Any]) -> None:
        """Workers have the values of now of the Variables that they were sent."""
        for request in requests:
            for i, number in request.variables.items():
                if number in request.news:
                    self._note(request.link, i, number, inputs[i])

    def _note(self, link: WorkerLink, i: int, number: int, buffer: np.ndarray) -> RemoteValue:
        occupancy: Occupancy = self.variables[i]
        value = RemoteValue(link, number, int(occupancy.facts[VERSION]), buffer)
        occupancy.copies[worker_key(link)] = value
        return value

    def _write(self, values: Sequence[Any], inputs: Sequence[Any]) -> None:
        super()._write(values, inputs)
        step, self._step = self._step, None
        assert step is not None
        step.commit()
        for request in step.requests:
            for i, _ in request.part.writes:
                self.variables[i].copies.clear()
                self.variables[i].leave_home(
                    self._note(request.link, i, request.variables[i], inputs[i]))

    def _repeated_error(
        self, error: Any, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> BaseException:
        """The error that the program raises by itself; where it raises none, the worker's."""
        if not isinstance(error, RemoteTaskError):
            return super()._repeated_error(error, leaves, captured)
        found: BaseException | None = self.repeated(numpy_error, leaves, captured)
        return found or FusecError(error.told)


def worker_key(link: WorkerLink) -> tuple[str, WorkerLink]:
    """Of copies there: what was sent over another connection is gone with it, also where the
    worker is the same process."""
    return "worker", link


__all__ = ["ExecutableOverWorkers", "PlanOverWorkers", "RemoteValue", "forget_program",
           "worker_key"]
