"""Threads that run steps of a worker, each all of its own: as many as run at the same time.

Each is a device's thread, so that what runs on it can be interrupted, and a step that finds itself
on one does all of its work there.
"""

from __future__ import annotations

from collections.abc import Callable

from fusec.core import locks
from fusec.runtime.devices.device_thread import DeviceThread

Work = Callable[[], None]


class StepThreads:
    """Runs each piece of work in a thread that is idle, or in a new one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = locks.Lock()
        self._idle: list[DeviceThread] = []
        self._every: list[DeviceThread] = []

    def start(self, work: Work) -> Callable[[type[BaseException]], object]:
        """Run it now; what raises an exception in it, if it still runs."""
        with self._lock:
            if self._idle:
                thread = self._idle.pop()
            else:
                thread = DeviceThread(self.name, (), None)
                self._every.append(thread)

        def run() -> None:
            try:
                work()
            finally:
                with self._lock:
                    self._idle.append(thread)

        thread.submit(run)
        return lambda kind: thread.interrupt(kind, run)

    def close(self) -> None:
        """End them when their work has ended."""
        with self._lock:
            threads, self._every = self._every, []
        for thread in threads:
            thread.close()
