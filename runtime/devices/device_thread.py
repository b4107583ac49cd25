"""The thread that runs a device's work in order, on cores and with workers of its own."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from fusec.core import locks, log, timeline
from fusec.core.process.interruption import Interruption
from fusec.runtime.native import NativeUnavailableError

from ..launching import threads

Work = Callable[[], object]
_EXIT_SECONDS = 1.0


class DeviceThread:
    """Runs submitted work, one piece after the other.

    The thread is started for the first piece, is a daemon, and is started anew in a forked child,
    where work that was waiting is forgotten: it is the parent's.  Where no thread can be started
    whoever submits work does it.
    """

    def __init__(self, device: str, cores: tuple[int, ...], pool: threads.Pool | None) -> None:
        """``device`` is its whole name."""
        self.device, self.cores, self.pool = device, cores, pool
        self.name = device.rpartition("device:")[2]
        self._changing = locks.Lock()
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._previous: threading.Thread | None = None
        self._running = locks.Lock()
        self._interruption = Interruption()
        self._now: tuple[Work, int] | None = None  # what runs, and its number

    def submit(self, work: Work) -> None:
        """Run it after earlier work."""
        with self._changing:
            self._queue.put(work)
            if self._thread is not None or self._start():
                return
        self._run_here()

    def runs(self, work: Work) -> bool:
        """Whether it runs that now."""
        now = self._now
        return now is not None and now[0] is work

    def interrupt(self, kind: type[BaseException], work: Work | None = None) -> bool:
        """Raise an exception in the running work, if any (in ``work`` only, where given)."""
        now = self._now
        if now is None or work not in (None, now[0]):
            return False
        if not self._interruption.send_once(now[1], kind):
            return False
        again = threading.Thread(target=self._interruption.send_again, args=(now[1], kind),
                                 name=f"fusec-{self.name}-interrupt", daemon=True)
        try:
            again.start()
        except (RuntimeError, MemoryError) as error:  # once is enough where nothing swallows it
            log.write(log.WARN, f"an exception was sent to {self.name} once only ({error})")
        return True

    def close(self) -> None:
        """End the thread after submitted work; more work starts another."""
        with self._changing:
            if self._thread is not None:
                self._queue.put(None)
                self._queue, self._previous, self._thread = SimpleQueue(), self._thread, None

    # -- the thread itself

    def _start(self) -> bool:
        if _Process.ends:  # whoever is told to end then runs what waits
            return False
        thread = threading.Thread(target=self._serve, args=(self._queue, self._previous),
                                  name=f"fusec-{self.name}", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:  # a limit of the system or of a container
            log.write(log.WARN, f"no thread could be started for {self.name} ({error}): who "
                                f"submits work to it does the work")
            return False
        except BaseException:  # Ctrl-C, and it may have started: the next does not share its work
            self._queue.put(None)
            self._queue = SimpleQueue()
            raise
        self._thread, self._previous = thread, None
        return True

    def _serve(self, queue: SimpleQueue[Work | None], previous: threading.Thread | None) -> None:
        if previous is not None:
            previous.join()
        threads.keep_to(self.cores)
        timeline.enter_device(self.device)
        self._enter_pool()
        process = _Process.number
        while (work := queue.get()) is not None:
            with self._running:
                self._run(work)
            del work  # and with it values, which would stay until there is more to do
            if _Process.number != process:  # the work forked, and this is the child's only thread
                return
        if self._thread is None:  # who submitted more meanwhile may have left it to this thread
            self._run_here()
        if self.pool is not None:
            self.pool.close()

    def _enter_pool(self) -> None:
        if self.pool is not None:
            try:
                threads.enter(self.pool)
            except NativeUnavailableError:
                return  # kernels run on the thread that calls them, there
            except OSError as error:
                log.write(log.WARN, f"kernels of {self.name} share the process's threads: {error}")

    def _run_here(self) -> None:
        """Do queued work, unless another thread does, or it was submitted by work that is being
        done here: it comes next.  (To wait for the other would be to wait for ever where that
        waits, with this device's work, for this thread.)"""
        if self._running.is_mine():
            return
        while not self._queue.empty() and self._running.try_acquire():
            try:
                while not self._queue.empty():
                    work = self._queue.get_nowait()
                    if work is not None:
                        self._run(work)
            finally:
                self._running.release()

    def _run(self, work: Work) -> None:
        own, was_working = self._interruption, _here.is_working
        _here.is_working = True
        try:
            number = own.begin()
            self._now = work, number
            try:
                work()
            finally:
                own.end()
            own.settle()
        except BaseException as error:
            own.settle()
            if own.sent is None or not isinstance(error, own.sent):
                threading.excepthook(threading.ExceptHookArgs(
                    (type(error), error, error.__traceback__, threading.current_thread())))
        finally:
            self._now = None
            _here.is_working = was_working

    # -- fork and exit

    def forget(self) -> None:
        """In a forked child: no thread, and nothing that waits."""
        self._begin()

    def end(self, seconds: float) -> None:
        """Wait for its present work, after the interpreter's end has begun."""
        self.close()
        if self._previous is not None:
            self._previous.join(seconds)


class _Here(threading.local):
    """Whether this thread is at a device's work."""

    is_working = False


_here = _Here()


def is_device_thread() -> bool:
    """Whether this thread is at a device's work, which others may wait for."""
    return _here.is_working


class _Process:
    """How often it was forked, and whether the interpreter is on its way out."""

    number = 0
    ends = False


_all: weakref.WeakSet[DeviceThread] = weakref.WeakSet()


def _after_fork() -> None:
    _Process.number += 1
    for each in list(_all):
        each.forget()


def _at_exit() -> None:
    """Let each finish its present work, before Python tears its modules down."""
    _Process.ends = True
    last = time.monotonic() + _EXIT_SECONDS
    for each in list(_all):
        each.end(max(0.0, last - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
