"""The client's connection to one worker: steps that wait for it, fetches, and its health."""

from __future__ import annotations

import asyncio
import itertools
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import distributed.comm
import numpy as np

from fusec.core import locks
from fusec.core.program_errors import WorkerLostError
from fusec.core.records import dataclass
from fusec.errors import user_error
from fusec.runtime.remote.remote_device import RunningStep

from ..block_tasks import versions
from .connection import Connection
from .wire import unpacked

PING_SECONDS = 1.0
_SESSION = "fusec-session"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class WorkerFacts:
    """A worker as its service describes it."""

    incarnation: int
    threads: int
    memory: int
    gpus: int


class Link:
    """See `fusec.runtime.remote.remote_device.WorkerLink`."""

    def __init__(
        self, task: int, name: str, address: str, patience: float, find: Callable[[int], Link],
    ) -> None:
        """``patience``: seconds after which a worker that says nothing is lost; ``find`` gives the
        connection to the worker of a task."""
        self.task, self.name, self.address, self.patience = task, name, address, patience
        self.session = ""
        self.title = f"/job:worker/task:{task} ({address})"
        self.incarnation = 0
        self.facts: WorkerFacts | None = None
        self.cause: str = ""  # why it is broken
        self.requests = 0  # to run: one a step
        self._find = find
        self._lock = locks.Lock()
        self._programs: set[int] = set()
        self._steps: dict[int, RunningStep] = {}
        self._fetches: dict[int, Future[Any]] = {}
        self._variables: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    # -- the connection, in the client's event loop

    async def open(self, session: str, connection_args: Mapping[str, Any]) -> None:
        """Connect; raises ``RuntimeError`` for another version, `WorkerLostError` where there is no
        answer."""
        try:
            comm = await distributed.comm.connect(self.address, **connection_args)
            try:
                await comm.write({"op": _SESSION, "reply": False, "session": session,
                                  "task": self.task, "made_with": versions()})
                answer = await comm.read()
            except BaseException:
                comm.abort()
                raise
        except OSError as error:
            raise WorkerLostError(
                f"{self.title} cannot be reached", cure="look at the worker's log; the client must "
                "reach workers at their addresses",
                values=[("cause", f"{type(error).__name__}: {error}")]) from None
        if answer["status"] != "ok":
            comm.abort()
            raise other_versions(self.title, answer["versions"])
        self.facts = WorkerFacts(answer["incarnation"], answer["threads"], answer["memory"],
                                 answer["gpus"])
        self.incarnation, self.session = answer["incarnation"], session
        self._connection = Connection(comm)
        self._watching = asyncio.ensure_future(self._watch())
        self._serving = asyncio.ensure_future(self._serve())

    async def _serve(self) -> None:
        error = await self._connection.serve(self._handle)
        self.break_off(f"the connection is broken ({type(error).__name__}: {error})")
        self._watching.cancel()

    async def _watch(self) -> None:
        """Health checks: a worker that does not answer is lost.  Time in which this event loop
        could not run, so that no answer was read, is not the worker's."""
        late, heard = 0.0, self._connection.heard
        pause = min(PING_SECONDS, self.patience / 3)
        while not self.cause:
            self._connection.post({"op": "ping"})
            before = time.monotonic()
            await asyncio.sleep(pause)
            now = time.monotonic()
            late = now - before - pause + (late if heard == self._connection.heard else 0.0)
            heard = self._connection.heard
            silent = now - heard - late
            if silent > self.patience:
                self.break_off(f"it has not answered for {silent:.1f} seconds")

    def break_off(self, cause: str) -> None:
        """Nothing more comes: tell everybody who waits."""
        with self._lock:
            if self.cause:
                return
            self.cause = cause
            steps, fetches = [*self._steps.values()], [*self._fetches.values()]
        self._connection.abort()
        for step in steps:
            step.broken(self, self.error())
        for fetch in fetches:
            fetch.set_exception(self.error())

    def error(self, cause: str = "") -> WorkerLostError:
        """The error of who needs the worker."""
        error = WorkerLostError(
            f"{self.title} is lost", cure="cluster.recover() waits for a worker in its place; then "
            "restore a checkpoint",
            values=[("cause", cause or self.cause), ("incarnation", f"{self.incarnation:x}")])
        error.task, error.worker = self.task, self.name
        return error

    def check(self) -> None:
        """Raise if it is broken."""
        if self.cause:
            raise self.error()

    # -- messages that come

    def _handle(self, message: dict[str, Any]) -> None:
        values = unpacked(message.pop("values", ()))
        op = message["op"]
        if op == "fetched":
            future = self._fetches.pop(message["request"], None)
            if future is not None:
                future.set_result(values[0])
            return
        step = self._steps.get(message.get("step", 0))
        if step is None:  # a pong, or for a step that has ended
            return
        if op == "value":
            step.arrived(self, {**message, "values": values})
        elif op == "done":
            step.ended(self, message["failure"])
        elif op == "lost":
            other = self._find(message["task"])
            step.broken(other, other.error(f"{self.title} cannot send to it: {message['cause']}"))

    # -- what steps ask for, in any thread

    def load(self, number: int, make: Callable[[], str]) -> None:
        """See `WorkerLink`."""
        with self._lock:
            is_new = number not in self._programs
            self._programs.add(number)
            if is_new:
                self.post({"op": "load", "program": number, "text": make()})

    def forget_program(self, number: int) -> None:
        """See `WorkerLink`."""
        self._programs.discard(number)
        self.post({"op": "unload", "program": number})

    def begin(self, step: int, running: RunningStep) -> None:
        """See `WorkerLink`."""
        with self._lock:
            self._steps[step] = running
            is_broken = bool(self.cause)
        if is_broken:
            raise self.error()

    def end(self, step: int) -> None:
        """See `WorkerLink`."""
        with self._lock:
            self._steps.pop(step, None)

    def post(self, message: Mapping[str, Any], values: Sequence[Any] = ()) -> None:
        """See `WorkerLink`."""
        self.requests += message["op"] == "run"
        self._connection.post(message, values)

    def number_of(self, occupancy: Any) -> int:
        """See `WorkerLink`; what is kept there goes with the Variable."""
        with self._lock:
            number = self._variables.get(occupancy)
            if number is None:
                number = self._variables[occupancy] = next(_numbers)
                weakref.finalize(occupancy, self.post, {"op": "drop", "number": number})
            return number

    def fetch(self, number: int) -> np.ndarray:
        """See `WorkerLink`."""
        return self._answered({"op": "fetch", "number": number})

    def put(self, number: int, value: np.ndarray) -> None:
        """Have the worker have this value of a Variable; waits until it has."""
        self._answered({"op": "put", "number": number}, [value])

    def _answered(self, message: Mapping[str, Any], values: Sequence[Any] = ()) -> np.ndarray:
        """What the worker answers to a request."""
        future: Future[np.ndarray] = Future()
        request = next(_numbers)
        with self._lock:
            self._fetches[request] = future
            is_broken = bool(self.cause)
        if is_broken:
            self._fetches.pop(request, None)
            raise self.error()
        self.post({**message, "request": request}, values)
        return future.result()

    def close(self, cause: str) -> None:
        """End it, from any thread."""
        self.break_off(cause)


def other_versions(title: str, theirs: Sequence[str]) -> Exception:
    """The error for a worker with another version."""
    return user_error(
        RuntimeError, f"{title} has another version than this process", None,
        "install the client's versions on every worker",
        values=[(label, f"fusec {ours}, NumPy {numpy}") for label, (ours, numpy) in (
            ("client", versions()), ("worker", theirs))])
