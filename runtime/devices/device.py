"""One device: its name, what it has, and the thread that runs its work in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from fusec.ir.device_names import DeviceName

Work = Callable[[], None]


class Device:
    """A device of this process; work that is submitted to it runs in order on a thread of its own.

    ``backend`` is the name of what compiles for it.  Devices with the same ``memory`` read each
    other's arrays as they are.  ``is_automatic``: placement may choose it without being told.
    """

    def __init__(
        self, name: DeviceName, backend: str, cores: tuple[int, ...] = (), memory: str = "host",
        is_automatic: bool = True,
    ) -> None:
        self.name, self.backend, self.cores, self.memory = name, backend, cores, memory
        self.is_automatic = is_automatic
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Work) -> None:
        """Run this on the device's thread, after what was submitted before; it must not raise."""
        if self._thread is None:
            self._start()
        self._queue.put(work)

    def _start(self) -> None:
        self._thread = threading.Thread(
            target=self._serve, name=f"fusec-{self.name.short}", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def __repr__(self) -> str:
        return f"<{self.name}>"
