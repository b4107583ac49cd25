"""One step on a worker: values that arrive from others meet its own actions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from fusec.runtime.partitions.rendezvous import Key, Meeting, Rendezvous
from fusec.runtime.partitions.step import END, Step, StepCancelled
from fusec.runtime.partitions.step_program import Action
from fusec.runtime.partitions.transfers import Sent

from ..replicas.ring import RingTransfer
from ..replicas.ring_spec import RING, RingRun
from .worker_programs import WorkerProgram

_MOST_ENDED = 4096


class EarlyRendezvous(Rendezvous):
    """One that keeps what arrives before its step begins: another worker may be faster than the
    client's request."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: OrderedDict[int, None] = OrderedDict()

    def begin(self, step: int) -> None:
        self._steps.setdefault(step, Meeting())

    def send(self, key: Key, value: Any) -> None:
        if key.step not in self._ended:
            self.begin(key.step)
        super().send(key, value)

    def forget(self, step: int) -> None:
        super().forget(step)
        self._ended[step] = None
        while len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)


class WorkerStep(Step):
    """A step's part on this worker.  ``incarnations``: of the processes that send to it, by the
    name of their device's job and task; ``deliver`` sends a value to another process."""

    def __init__(
        self, program: WorkerProgram, number: int, frame: str, sizes: dict[str, int],
        variables: Mapping[int, Any], rendezvous: EarlyRendezvous,
        incarnation_of: Callable[[str], int], deliver: Callable[[Key, Sent, dict], bool],
    ) -> None:
        super().__init__(program.program, (), sizes, frame)
        self.worker_program, self.number, self.rendezvous = program, number, rendezvous
        self.incarnation_of, self.deliver = incarnation_of, deliver
        self._is_held = True
        for at, value in variables.items():
            self.values[at] = value

    def assigned(self) -> dict[int, Any]:
        """The new values of Variables, by their inputs."""
        return {i: self.values[number] for i, number in self.worker_program.writes}

    def abort(self) -> None:
        """End it as soon as nothing of it runs any more; by any thread."""
        self._tell()
        self._mail.put(END)

    def run(self) -> None:
        try:
            super().run()
        except StepCancelled:
            return

    def _start(self) -> None:
        with self._lock:
            first = [a for a, count in enumerate(self._waits) if not count]
            self._in_flight = len(first) + 1 + self._is_held
        for number in first:
            self._issue(number)
        self._ended(())
        if not self.program.actions:
            self._let_go()

    def _issue(self, number: int) -> None:
        if self.program.actions[number].kind == RING and not self._is_skipped(number):
            self._mail.put(partial(self._in_ring, number, partial(self._begin_ring, number)))
        else:
            super()._issue(number)

    # -- sums over all workers

    def _in_ring(self, number: int, work: Callable[[], Sequence[int]]) -> None:
        """Do one thing of a sum, on the step's thread; it is counted as in flight."""
        followers: Sequence[int] = ()
        try:
            if not self._is_skipped(number):
                followers = work()
        except Exception as error:
            self._fail(error, self.program.positions[number])
        self._ended(followers)

    def _begin_ring(self, number: int) -> Sequence[int]:
        action, spec = self.program.actions[number], self.worker_program.rings[number]
        run = RingRun(spec, [self.values[at] for at in action.reads])
        for phase, message, source in [*run.member.expected]:
            key = self._ring_key(spec.device_of(source), spec.own_device, spec.key(phase, message))
            self.rendezvous.receive(
                key, partial(self._ring_message, number, run, phase, message))
        return self._after_ring(number, run, run.member.begin())

    def _ring_message(
        self, number: int, run: RingRun, phase: str, message: int, sent: Sent
    ) -> None:
        """A message has come, in the thread that reads them."""
        with self._lock:
            if self._is_cancelled:
                return
            self._in_flight += 1
        self._mail.put(partial(self._in_ring, number, lambda: self._after_ring(
            number, run, run.member.take(phase, message, sent.values[0]))))

    def _after_ring(
        self, number: int, run: RingRun, transfers: Iterable[RingTransfer]
    ) -> Sequence[int]:
        """Send these; the actions that are ready then."""
        for transfer in transfers:
            spec = run.spec
            key = self._ring_key(spec.own_device, spec.device_of(transfer.target),
                                 spec.key(transfer.phase, transfer.number))
            self.deliver(key, Sent((transfer.values,), False, "host"), {})
        return self._keep(number, run.results()) if run.is_over() else ()

    def _ring_key(self, source: str, target: str, value: str) -> Key:
        return Key(source, self.incarnation_of(source), target, value, self.number, self.frame)

    # -- its end

    def _keep(self, number: int, results: Sequence[Any]) -> Sequence[int]:
        ready = super()._keep(number, results)
        if not self._left:
            self._let_go()
        return ready

    def _fail(self, error: BaseException, position: int) -> None:
        super()._fail(error, position)
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            was_held, self._is_held = self._is_held, False
        if was_held:
            self._ended(())

    def _key(self, action: Action, source: str, target: str) -> Key:
        return super()._key(action, source, target)._replace(
            incarnation=self.incarnation_of(source))

    def _deliver(self, key: Key, sent: Sent) -> None:
        if not self.deliver(key, sent, self.sizes):
            super()._deliver(key, sent)
