"""What a worker keeps for one client: programs, Variables, and the steps that run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from fusec import config
from fusec.core import locks
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices.device import Device
from fusec.runtime.partitions.rendezvous import Key
from fusec.runtime.partitions.step import StepCancelled
from fusec.runtime.partitions.transfers import Sent
from fusec.runtime.remote.remote_device import JOB

from ..threads import is_workers_own
from .connection import Connection
from .peers import PeerLink
from .step_threads import StepThreads
from .wire import unpacked
from .worker_programs import WorkerProgram, read_program
from .worker_steps import EarlyRendezvous, WorkerStep


class WorkerDevice(Device):
    """A device of this worker: a thread; graphs themselves say what is to run on its GPU."""

    def __init__(self, task: int, type_: str) -> None:
        super().__init__(DeviceName(JOB, task, "CPU", 0))
        self.name, self.memory = DeviceName(JOB, task, type_, 0), "host"


class Session:
    """``handle`` is called by the event loop's thread with each message, in order."""

    def __init__(self, service: Any, name: str, task: int, connection: Connection) -> None:
        self.service, self.name, self.task, self.connection = service, name, task, connection
        self.devices = {type_: WorkerDevice(task, type_) for type_ in ("CPU", "GPU")}
        self.rendezvous = EarlyRendezvous()
        self.variables: dict[int, np.ndarray] = {}
        self._texts: dict[int, str] = {}
        self._programs: dict[int, WorkerProgram] = {}
        self._steps: dict[int, _RunningStep] = {}
        self._assigned: dict[int, dict[int, np.ndarray]] = {}
        self._lock = locks.Lock()
        self.threads = StepThreads(f"fusec-session-{task}")
        if is_workers_own():
            config.num_threads = service.threads

    # -- messages

    def handle(self, message: dict[str, Any]) -> None:
        """Do what a client, or another worker, asks for."""
        values = unpacked(message.pop("values", ()))
        handler = getattr(self, f"_{message['op']}_message")
        handler(message, values)

    def _ping_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self.connection.post({"op": "pong"})

    def _load_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self._texts[message["program"]] = message["text"]

    def _unload_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self._texts.pop(message["program"], None)
        self._programs.pop(message["program"], None)

    def _drop_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self.variables.pop(message["number"], None)

    def _fetch_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        value = self.variables[message["number"]]
        self.connection.post({"op": "fetched", "request": message["request"]}, [value])

    def _put_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self.variables[message["number"]] = np.asarray(values[0])
        self.connection.post({"op": "fetched", "request": message["request"]}, [0])

    def _run_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self.variables.update(zip(
            message["news"], (np.asarray(v) for v in values), strict=True))
        self.rendezvous.begin(message["step"])
        step = _RunningStep(self, message)
        self._steps[message["step"]] = step
        step.start()

    def _value_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        peer = self._steps.get(message["step"])
        incarnation = message.get("incarnation", 0)
        key = Key(message["source"], incarnation, message["target"], message["key"],
                  message["step"], message["frame"])
        if peer is not None:
            peer.learn(message.get("sizes") or {})
        self.rendezvous.send(key, Sent(tuple(values), message["cut"], "host"))

    def _commit_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        self.variables.update(self._assigned.pop(message["step"], {}))

    def _abort_message(self, message: Mapping[str, Any], values: list[Any]) -> None:
        step = self._steps.pop(message["step"], None)
        self.rendezvous.forget(message["step"])
        self._assigned.pop(message["step"], None)
        if step is not None:
            step.abort()

    # -- steps

    def program(self, number: int) -> WorkerProgram:
        """A program, admitted when it is first run."""
        with self._lock:
            if number not in self._programs:
                self._programs[number] = read_program(self._texts[number], self.devices)
            return self._programs[number]

    def ended(self, step: _RunningStep, assigned: dict[int, np.ndarray] | None, told: Any) -> None:
        """A step has ended, or failed; by its own thread."""
        number = step.number
        if assigned is not None:
            self._assigned[number] = assigned
        self._steps.pop(number, None)
        self.connection.post({"op": "done", "step": number, "failure": told})

    def lost(self, step: int, task: int, cause: str) -> None:
        """A connection to another worker is broken, which a step needs."""
        self.connection.post({"op": "lost", "step": step, "task": task, "cause": cause})

    def close(self) -> None:
        """Nobody listens any more: end what runs, and forget everything."""
        for step in [*self._steps.values()]:
            step.abort()
        self._steps, self.variables, self._assigned = {}, {}, {}
        for device in self.devices.values():
            device.close()
        self.threads.close()


class _RunningStep:
    """A step from the request to its end."""

    def __init__(self, session: Session, message: Mapping[str, Any]) -> None:
        self.session, self.message, self.number = session, message, int(message["step"])
        self.numbers = {int(i): int(number) for i, number in message["variables"]}
        self.peers = {int(task): (int(inc), str(at)) for task, (inc, at) in (
            message["peers"].items())}
        self.variables = {i: session.variables[n] for i, n in self.numbers.items()}
        self.sizes: dict[str, int] = dict(message["sizes"])
        self._step: WorkerStep | None = None
        self._links: dict[int, PeerLink] = {}
        self._is_aborted = False

    def learn(self, sizes: Mapping[str, int]) -> None:
        """Sizes that another process has learnt."""
        self.sizes.update(sizes)

    def start(self) -> None:
        """Have it run, by a thread of its own."""
        self._interrupt = self.session.threads.start(self.run)

    def abort(self) -> None:
        """End it, also in the middle of a kernel."""
        self._is_aborted = True
        step = self._step
        if step is not None:
            step.abort()
        self._interrupt(StepCancelled)

    def run(self) -> None:
        """All of it."""
        session = self.session
        assigned, told = None, None
        try:
            program = session.program(int(self.message["program"]))
            self._step = step = WorkerStep(
                program, self.number, str(self.message["frame"]), self.sizes, self.variables,
                session.rendezvous, self._incarnation_of, self._deliver)
            if self._is_aborted:
                return
            step.run()
            failure = step.failure
            if failure is None and not self._is_aborted:
                assigned = {self.numbers[i]: np.asarray(v) for i, v in step.assigned().items()}
            elif failure is not None:
                told = _told(failure.error, failure.position)
            step.close()
        except BaseException as error:
            told = _told(error, -1)
        finally:
            session.rendezvous.forget(self.number)
            for link in self._links.values():
                link.forget(self.number)
        if not self._is_aborted:
            session.ended(self, assigned, told)

    def _incarnation_of(self, device: str) -> int:
        name = DeviceName.parse(device)
        return self.peers[name.task or 0][0] if name.job == JOB else 0

    def _deliver(self, key: Key, sent: Sent, sizes: Mapping[str, int]) -> bool:
        """Send a value to another process; False: it is for this one."""
        target = DeviceName.parse(key.target)
        if target.job == JOB and target.task == self.session.task:
            return False
        message = {"op": "value", "step": key.step, "source": key.source, "target": key.target,
                   "key": key.value, "frame": key.frame, "cut": sent.is_cut, "sizes": {**sizes}}
        if target.job != JOB:
            self.session.connection.post(message, sent.values)
            return True
        message |= {"session": self.session.name, "incarnation": key.incarnation}
        assert target.task is not None
        self._link(target.task).post(message, sent.values)
        return True

    def _link(self, task: int) -> PeerLink:
        """The connection to another worker; the step is told when it breaks."""
        if task not in self._links:
            incarnation, address = self.peers[task]
            self._links[task] = link = self.session.service.peers.link(address, incarnation)
            link.watch(self.number, partial(self.session.lost, self.number, task))
        return self._links[task]



def _told(error: BaseException, position: int) -> dict[str, Any]:
    return {"position": position, "told": f"{type(error).__name__}: {error}"}


__all__ = ["Session", "WorkerDevice"]
