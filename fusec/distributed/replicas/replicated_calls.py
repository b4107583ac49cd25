"""Calls of a replicated step: a batch is cut, every worker gets its pieces, results come back."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.occupancy import Occupancy
from fusec.core.records import dataclass, field
from fusec.errors import FusecError
from fusec.ir import Node
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices import registry
from fusec.runtime.failed_checks import error_of
from fusec.runtime.partitions.step_program import Action, StepProgram
from fusec.runtime.remote.remote_device import WorkerLink, worker_of, worker_tasks
from fusec.runtime.remote.replicas import HoldOfReplicas, news_of, note_replicas
from fusec.runtime.remote.runs_over_workers import forget_program
from fusec.runtime.remote.step_over_workers import RemoteTaskError, RunRequest, StepOverWorkers
from fusec.runtime.remote.worker_plans import WorkerPart, next_number

from .replica_parts import (
    ARGUMENTS,
    CLIENT,
    RESULTS,
    PartArgument,
    PieceGraphs,
    ReplicaPart,
    part_of,
)
from .replica_plan import ReplicaPlan
from .ring import SumRing
from .ring_spec import device_of


@dataclass
class ReplicatedCalls:
    """A plan on the workers of a cluster; ``lost`` tells of a failure which worker it was."""

    plan: ReplicaPlan
    parts: Sequence[ReplicaPart]
    numbers: Sequence[int] = field(default_factory=list)  # of the programs, by part

    def __post_init__(self) -> None:
        self.numbers = [next_number() for _ in self.parts]
        self.starts = [0, *np.cumsum(self.plan.pieces).tolist()]
        self.program, self._arrived = _client_program(self.parts)
        for part, number in zip(self.parts, self.numbers, strict=True):
            weakref.finalize(self, forget_program, part.task, number)

    def call(self, inputs: Mapping[int, Any]) -> list[Any]:
        """The leaves of the result; ``inputs``: the arguments by number of input."""
        plan = self.plan
        given = {number: _value_now(source) for number, source in plan.captured.items()}
        values = [self._argument({**given, **inputs}, each)
                  for part in self.parts for each in part.given]
        written = {number for number, _ in plan.updates}
        uses = [(met.occupancy, met.input in written) for met in plan.variables]
        try:
            with HoldOfReplicas(uses):
                came = self._run(values)
        except RemoteTaskError as error:
            raise self._repeated({**given, **inputs}) or FusecError(error.told) from None
        return [self._result(number, inputs, came) for number in range(len(plan.results))]

    def _repeated(self, inputs: Mapping[int, Any]) -> Exception | None:
        """The error that the step raises by itself, on the whole batch; None where it raises none.
        A step that failed has assigned nothing: Variables are what they were."""
        values = {met.input: np.asarray(met.reference()) for met in self.plan.variables}
        graph = self.plan.traced
        return error_of(graph, [{**inputs, **values}[n] for n in range(len(graph.inputs))])

    def _argument(self, inputs: Mapping[int, Any], given: PartArgument) -> Any:
        if given.input < 0:
            return given.number
        value = inputs[given.input]
        if given.piece is None:
            return value
        axis = next(a for a, sizes in enumerate(self.plan.chunks[given.input]) if sizes is not None)
        part = slice(*self.starts[given.piece:given.piece + 2])
        return value[(slice(None),) * axis + (part,)]

    def _run(self, values: list[Any]) -> list[Any]:
        """What workers send back; their Variables have their new values then."""
        links = [worker_of(part.task) for part in self.parts]
        buffers = [_buffer(met) for met in self.plan.variables]
        occupancies = [met.occupancy for met in self.plan.variables]
        requests = [self._request(at, link, occupancies, buffers) for at, link in enumerate(links)]
        step = StepOverWorkers(self.program, values, {}, "", requests)
        step.run()
        failure, after = step.failure, step.values
        step.close()
        if failure is not None:
            raise failure.error from None
        step.commit()
        is_written = {at for at, _ in self.parts[0].writes}
        for at, (occupancy, buffer) in enumerate(zip(occupancies, buffers, strict=True)):
            note_replicas(occupancy, buffer, requests, at, at in is_written)
        return [after[n] for n in self._arrived]

    def _request(
        self, at: int, link: WorkerLink, occupancies: Sequence[Occupancy],
        buffers: Sequence[np.ndarray],
    ) -> RunRequest:
        part = self.parts[at]
        numbers = {i: link.number_of(of) for i, of in enumerate(occupancies)}
        news = news_of(link, numbers, occupancies, buffers)
        return RunRequest(link, WorkerPart(
            part.task, self.numbers[at], [], [*numbers], [*part.writes], part.text), numbers, news)

    def _result(self, number: int, inputs: Mapping[int, Any], came: Sequence[Any]) -> Any:
        result = self.plan.results[number]
        if result.value is None:
            if result.argument >= 0:
                return inputs[result.argument]
            value = result.object
            return value.copy() if isinstance(value, np.ndarray) else value
        keys = [key for part in self.parts for key in part.results]
        found = [value for (n, _), value in zip(keys, came, strict=True) if n == number]
        return found[0] if result.axis is None else np.concatenate(found, axis=result.axis)


def present_workers() -> tuple[int, ...]:
    """The tasks of the present cluster's workers; () where there is none."""
    return worker_tasks()


def calls_of(plan: ReplicaPlan, tasks: Sequence[int], is_lossy: bool) -> ReplicatedCalls:
    """The calls of a plan on these workers: neighbouring pieces go to one."""
    count, graphs = len(plan.pieces), PieceGraphs(plan)
    starts = tuple(k * count // len(tasks) for k in range(len(tasks) + 1))
    ring = SumRing(starts, "add", is_lossy)
    return ReplicatedCalls(plan, [part_of(plan, graphs, ring, tasks, k) for k in range(len(tasks))])


def _client_program(parts: Sequence[ReplicaPart]) -> tuple[StepProgram, list[int]]:
    """A send to each worker, a receive from each that has results; the values that arrive."""
    actions: list[Action] = []
    count = sum(len(part.given) for part in parts)
    arrived: list[int] = []
    home, first = DeviceName.parse(CLIENT), 0
    for part in parts:
        reads = tuple(range(first, first + len(part.given)))
        first += len(part.given)
        send = Node("Send", (), (), {
            "key": ARGUMENTS, "target": device_of(part.task), "lossy": False})
        actions.append(Action(len(actions), "send", home, reads, node=send))
        if part.results:
            writes = tuple(range(count, count + len(part.results)))
            count += len(writes)
            arrived += writes
            recv = Node("Recv", (), (), {
                "key": RESULTS, "source": device_of(part.task), "results": ()})
            actions.append(Action(len(actions), "recv", home, (), writes, node=recv))
    device = registry.matching(home)[0]
    return StepProgram(
        actions, [device] * len(actions), [0] * len(actions), [()] * len(actions),
        [*range(len(actions))], [1] * count, [None] * len(actions),
        lambda error, number: number, {}), arrived


def _value_now(source: Any) -> Any:
    return source() if callable(source) else source


def _buffer(met: Any) -> np.ndarray:
    variable = met.reference()
    if variable is None:
        raise ReferenceError(f"{met.title} is gone, which the step used")
    buffer: np.ndarray = variable.buffer
    return buffer


__all__ = ["ReplicatedCalls", "calls_of", "present_workers"]
