"""One step over several devices: ready actions go to their devices, ended ones make more ready.

After section 3.1 of the TensorFlow paper: each action has a count of those that it waits for; when
that is 0 it goes into its device's queue.  Receives do not occupy their device: they end when their
value has come.

An action that raises ends the step, but not at once: the program would have raised the error that
comes first in its own order.  So later actions of the program are skipped, earlier ones still run,
and of several errors the first in the program's order is raised.

Interrupts from outside (Ctrl-C, a time-out) end it as soon as nothing of it runs any more: waiting
actions are skipped, and an exception is raised in those running on the devices, unless they are
another step's.  Who is impatient and interrupts again does not wait for it.

A step that begins on a device's thread (a library has called the program, which calls a divided
function) does everything on that thread: devices that wait for each other would never end.
So does one that a signal handler begins in the middle of another step: its thread may
hold a lock that devices wait for.
"""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from fusec.codegen.plan.plan_over_devices import Action
from fusec.core import locks, timeline
from fusec.errors import InternalError, unsupported
from fusec.runtime.devices.device import Device
from fusec.runtime.devices.device_thread import is_device_thread

from .rendezvous import RENDEZVOUS, Key, Process
from .step_program import Failure, StepProgram, Times
from .transfers import Sent, unpacked

WAKE_SECONDS = 0.02  # how long the caller sleeps at most: a deadline's exception needs a bytecode
_numbers = itertools.count(1)
POLL_SECONDS = 0.002
MOST_INTERRUPTS = 1000  # while a step is being cancelled
END = object()
_BEFORE_ALL = -1  # the position of what is no error of the program


class StepCancelled(BaseException):
    """Raised in a device's thread whose work nobody wants any more."""


class _Caller(threading.local):
    """Whether this thread is inside of a step, and not of its callees."""

    is_inside = False


_caller = _Caller()


class _Work:
    """An action as a piece of work of its device."""

    __slots__ = ("device", "number", "run", "step")

    def __init__(
        self, step: Step, number: int, device: Device, run: Callable[[], Sequence[Any]] | None,
    ) -> None:
        self.step, self.number, self.device, self.run = step, number, device, run

    def __call__(self) -> None:
        step = self.step
        try:
            step.execute(self.number, self.run, self)
        except BaseException as error:  # in what is to say that it has ended: nobody else would
            step.give_up(error)


class Step:
    """A run of the program; its values are dropped when their last reader has ended.

    ``times``, where they are asked for, are (step, microseconds) pairs of each task, by number.
    """

    rendezvous = RENDEZVOUS

    def __init__(
        self, program: StepProgram, inputs: Sequence[Any], sizes: dict[str, int], frame: str = "",
        timed: bool = False,
    ) -> None:
        self.program, self.sizes, self.frame = program, sizes, frame
        self.number = next(_numbers)
        self.values: list[Any] = [*inputs, *[None] * (len(program.uses) - len(inputs))]
        self.failure: Failure | None = None
        self.live: dict[str, int] = {}  # bytes on each device now
        self.peak: dict[str, int] = {}
        self.times: dict[int, Times] | None = {} if timed else None
        self._waits = list(program.waits)
        self._uses = list(program.uses)
        self._lock = locks.Lock()
        self._in_flight = 0  # queued or running; not receives whose value has not come
        self._left = len(program.actions)
        self._is_cancelled = False
        self._running: set[_Work] = set()
        self._mail: SimpleQueue[Any] = SimpleQueue()
        self._context = contextvars.copy_context()
        self._is_inline = is_device_thread() or _caller.is_inside
        self._process = os.getpid()

    # -- the caller

    def run(self) -> None:
        """Returns when everything has run, or nothing more will; see `failure`."""
        was_inside = _caller.is_inside
        try:
            _caller.is_inside = True
            self.rendezvous.begin(self.number)
            self._start()
            self._serve()
            self.rendezvous.forget(self.number)
        except BaseException:
            self._cancel()
            raise
        finally:
            _caller.is_inside = was_inside
        if self.failure is None and self._left:
            raise InternalError(f"a step stands still: {self._left} actions wait for each other")

    def close(self) -> None:
        """Let go of values and of the error, whose traceback holds this step."""
        self.values, self.failure = [], None

    def _start(self) -> None:
        with self._lock:
            first = [a for a, count in enumerate(self._waits) if not count]
            self._in_flight = len(first) + 1  # one for this loop: nothing ends before it
        for number in first:
            self._issue(number)
        self._ended(())

    def _serve(self) -> None:
        """Run the actions of this thread, until the end."""
        while True:
            start = timeline.now() if timeline.on else 0
            work = self._next()
            if start:
                timeline.span("", "wait", "devices", start, timeline.now())
            if work is END:
                return
            if isinstance(work, BaseException):
                raise work
            work()

    def _next(self) -> Any:
        while True:
            self._check_process()
            try:
                return self._mail.get(timeout=WAKE_SECONDS)
            except Empty:
                continue

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise unsupported(
                "a fork in the middle of a call over several devices: the child has no thread that "
                "would go on with it", cure="fork before the call, or after it")

    def _cancel(self) -> None:
        """Nothing more starts; returns when running actions have ended, or raises the interrupt of
        the wait for that."""
        for _ in range(MOST_INTERRUPTS):
            try:
                self._tell()
                break
            except BaseException:  # another one: the first is on its way to the caller
                continue
        while any(work.device.runs(work) for work in [*self._running]):
            time.sleep(POLL_SECONDS)

    def _tell(self) -> None:
        """Tell everybody that the step has been cancelled; more than once does no harm."""
        self._is_cancelled = True
        self.rendezvous.forget(self.number)
        with self._lock:  # nothing begins while it is held
            running = [*self._running]
        for work in running:
            work.device.interrupt(StepCancelled, work)
        self.close()

    # -- any thread

    def _issue(self, number: int) -> None:
        """Start an action that waits for nothing any more; it is counted as in flight."""
        action = self.program.actions[number]
        if action.kind == "recv" and not self._is_skipped(number):
            self._receive(number, action)
        elif action.kind == "send" and not action.is_lossy:  # says where values are: no work
            self.execute(number, None, None)
        else:
            self._submit(number)

    def _submit(self, number: int, run: Callable[[], Sequence[Any]] | None = None) -> None:
        if self._is_inline or self.program.actions[number].is_on_caller:
            self._mail.put(partial(self.execute, number, run, None))
        else:
            device = self.program.devices[number]
            device.submit(_Work(self, number, device, run))

    def _is_skipped(self, number: int) -> bool:
        failure = self.failure
        return self._is_cancelled or (
            failure is not None and self.program.positions[number] > failure.position)

    def execute(
        self, number: int, run: Callable[[], Sequence[Any]] | None, work: _Work | None,
    ) -> None:
        """Run an action: as this ``work`` of its device, or on the caller's thread (None)."""
        with self._lock:
            is_skipped = self._is_skipped(number)
            if work is not None and not is_skipped:
                self._running.add(work)
        followers: Sequence[int] = ()
        if not is_skipped:
            followers = self._tried(number, run or partial(self._done, number), work)
        self._ended(followers)

    def _tried(
        self, number: int, run: Callable[[], Sequence[Any]], work: _Work | None
    ) -> Sequence[int]:
        """Run it, and take note of its exception; the actions that are ready now."""
        try:
            results = self._called(run) if work is None else self._context.copy().run(run)
            return self._keep(number, results)
        except Exception as error:
            self._fail(error, self.program.position_of(error, number))
        except BaseException as error:
            if work is None:  # it interrupts the caller, or the sender whose value was received
                raise
            self._fail(error, _BEFORE_ALL)
        finally:
            if work is not None:
                self._running.discard(work)
        return ()

    def _called(self, run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Its result on the caller's thread, where it may begin steps of its own."""
        was_inside, _caller.is_inside = _caller.is_inside, self._is_inline
        try:
            return run()
        finally:
            _caller.is_inside = was_inside

    def _done(self, number: int) -> Sequence[Any]:
        """Do the action; its results."""
        action = self.program.actions[number]
        start = timeline.now() if timeline.on else 0
        operands = [self.values[i] for i in action.reads]
        results: Sequence[Any] = ()
        if action.kind == "task":
            run = self.program.runs[number]
            assert run is not None
            times = None if self.times is None else self.times.setdefault(number, [])
            results = run(operands, self.sizes, times)
        elif action.kind == "send":
            self._send(number, action, operands)
        if start:
            self._record(action, start)
        return results

    def _keep(self, number: int, results: Sequence[Any]) -> Sequence[int]:
        """Enter results, drop values that nobody reads any more; the actions that are ready now."""
        action, name = self.program.actions[number], self.program.names[number]
        with self._lock:
            if self._is_cancelled:
                return ()
            for at, value in zip(action.writes, results, strict=True):
                self.values[at] = value if self._uses[at] else None
                self._count(name, _nbytes(self.values[at]))
            for at in action.reads:
                self._uses[at] -= 1
                if not self._uses[at]:
                    self._count(name, -_nbytes(self.values[at]))
                    self.values[at] = None
            self._left -= 1
            ready = []
            for follower in self.program.followers[number]:
                self._waits[follower] -= 1
                if not self._waits[follower]:
                    ready.append(follower)
            self._in_flight += len(ready)
        return ready

    def _count(self, device: str, nbytes: int) -> None:
        if nbytes:
            self.live[device] = live = self.live.get(device, 0) + nbytes
            if live > self.peak.get(device, 0):
                self.peak[device] = live
            if timeline.on:
                timeline.counter(device, "bytes in use", live)

    def _fail(self, error: BaseException, position: int) -> None:
        with self._lock:
            if not self._is_cancelled and (
                    self.failure is None or position < self.failure.position):
                self.failure = Failure(position, error)

    def give_up(self, error: BaseException) -> None:
        """The executor itself has failed in another thread: the caller raises that."""
        self._mail.put(error)

    def _ended(self, ready: Sequence[int]) -> None:
        """An action has ended, or is skipped; those that are ready are counted as in flight."""
        for number in ready:
            self._issue(number)
        with self._lock:
            self._in_flight -= 1
            is_last = self._in_flight == 0
        if is_last:
            self._mail.put(END)

    # -- transfers

    def _key(self, action: Action, source: str, target: str) -> Key:
        assert action.node is not None
        return Key(source, Process.incarnation, target, action.node.attrs["key"], self.number,
                   self.frame)

    def _send(self, number: int, action: Action, operands: Sequence[Any]) -> None:
        assert action.node is not None
        device, target = self.program.names[number], action.node.attrs["target"]
        key = self._key(action, device, target)
        make = partial(Sent.of, operands, action.node.attrs["lossy"],
                       self.program.devices[number].memory, self.program.memories)
        sent = self._context.copy().run(make)  # a device's stream may be the caller's
        if timeline.on:
            timeline.flow(key, True, device, timeline.now())
        self._deliver(key, sent)

    def _deliver(self, key: Key, sent: Sent) -> None:
        self.rendezvous.send(key, sent)

    def _receive(self, number: int, action: Action) -> None:
        """Wait for the value; nothing is in flight meanwhile."""
        assert action.node is not None
        key = self._key(action, action.node.attrs["source"], self.program.names[number])
        self.rendezvous.receive(key, partial(self._received, number, key))
        self._ended(())

    def _received(self, number: int, key: Key, sent: Sent) -> None:
        """The value has come: in the sender's thread, or in that of who asked for it."""
        memory = self.program.devices[number].memory
        with self._lock:
            if self._is_cancelled:
                return
            self._in_flight += 1
        if timeline.on:
            timeline.flow(key, False, key.target, timeline.now())
        if sent.is_there(memory):
            self.execute(number, partial(unpacked, sent, memory, self.program.memories), None)
        else:
            self._submit(number, partial(self._unpacked, number, sent))

    def _unpacked(self, number: int, sent: Sent) -> Sequence[Any]:
        start = timeline.now() if timeline.on else 0
        results = unpacked(sent, self.program.devices[number].memory, self.program.memories)
        if start:
            self._record(self.program.actions[number], start)
        return results

    def _record(self, action: Action, start: int) -> None:
        kind = {"task": "task", "send": "copy", "recv": "copy"}[action.kind]
        node = action.node if action.call_plan is None else action.call_plan.graph.nodes[-1]
        timeline.span(str(action.device), kind, action.name, start, timeline.now(),
                      None if node is None else node.loc)


def _nbytes(value: Any) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else 0
