"""Threads that run ranges of lanes: Python's own, for a lane may run as long as a program.

Native loops give the interpreter's lock up, and handle signals, as they do on any thread of
Python's.  The pool of kernels has threads that know nothing of that lock.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
from collections.abc import Callable
from typing import Protocol

from fusec.core import locks


class Worker(Protocol):
    """What one thread needs for its ranges."""

    def failed_at(self, begin: int, end: int) -> int | None: ...
    def done(self) -> None: ...


class _CancelledError(BaseException):
    """Raised in a thread whose lanes nobody waits for any more."""


class Job:
    """Lanes from ``begin`` to ``end``, taken in order by ``threads``: at most ``most`` at once, and
    no fewer than ``least`` but for the last ones."""

    def __init__(
        self, new_worker: Callable[[], Worker], begin: int, end: int, most: int, threads: int,
        least: int = 1,
    ) -> None:
        self.new_worker, self.next, self.end = new_worker, begin, end
        self.most, self.threads, self.least = most, threads, least
        self.failed: int | None = None
        self.error: BaseException | None = None
        self.running: set[int] = set()
        # No Condition: its ``__enter__`` is Python's, and a cancellation in it would keep the lock.
        self.lock, self.left = locks.Lock(), queue.SimpleQueue[None]()

    def take(self) -> tuple[int, int] | None:
        """The next range; None where there is none."""
        with self.lock:
            if self.failed is not None or self.next >= self.end:
                return None
            left = self.end - self.next
            count = min(max(min(self.most, left // (2 * self.threads)), self.least), left)
            begin, self.next = self.next, self.next + count
            return begin, begin + count

    def work(self, failed_at: Callable[[int, int], int | None]) -> None:
        """Run ranges until none is left."""
        while (lanes := self.take()) is not None:
            failed = failed_at(*lanes)
            if failed is not None:
                with self.lock:
                    self.failed = failed if self.failed is None else min(self.failed, failed)

    def help(self) -> None:
        """`work` of a thread that is not the caller's."""
        ident = threading.get_ident()
        try:
            with self.lock:
                if self.next >= self.end or self.failed is not None:
                    return
                self.running.add(ident)
            worker = self.new_worker()
            self.work(worker.failed_at)
            worker.done()
        except _CancelledError:
            pass
        except BaseException as error:  # memory, say
            with self.lock:
                self.error, self.next = error, self.end
        finally:  # a thread is cancelled once: the second try is not interrupted
            try:
                self.running.discard(ident)
                self.left.put(None)
            except _CancelledError:
                self.running.discard(ident)
                self.left.put(None)

    def wait(self) -> None:
        while self.running:
            self.left.get()

    def cancel(self) -> None:
        """End what other threads do, as soon as they look."""
        with self.lock:
            self.next = self.end
            for ident in [*self.running]:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(_CancelledError))


def run_job(job: Job, failed_at: Callable[[int, int], int | None]) -> int | None:
    """All lanes, with the caller's own ``failed_at``; where the first range failed, if one did.

    An exception of a signal's handler ends other threads' ranges too.
    """
    _threads.give(job)
    try:
        job.work(failed_at)
        job.wait()
    except BaseException:
        job.cancel()
        job.wait()
        raise
    if job.error is not None:
        raise job.error
    return job.failed


class _Threads:
    """Threads that wait for jobs; made when first needed, and anew in a forked process."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.count = 0
        self.lock = locks.Lock()

    def give(self, job: Job) -> None:
        """Let as many threads as the job asks for help with it."""
        wanted = job.threads - 1
        with self.lock:
            while self.count < wanted:
                threading.Thread(target=self._serve, args=(self.jobs,), daemon=True,
                                 name=f"fusec lanes {self.count}").start()
                self.count += 1
        for _ in range(wanted):
            self.jobs.put(job)

    def _serve(self, jobs: queue.SimpleQueue[Job]) -> None:
        while True:
            try:
                while True:  # a jump back outside of ``try`` could be interrupted too
                    job = jobs.get()
                    job.help()
                    del job
            except _CancelledError:  # it came when the range had ended
                continue

    def forget(self) -> None:
        self.__init__()  # type: ignore[misc]


_threads = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forget)
