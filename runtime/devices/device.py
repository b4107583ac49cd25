"""One device: its name, its resources, and the thread that runs its work in order."""

from __future__ import annotations

from collections.abc import Callable

from fusec.core import machine
from fusec.ir.device_names import DeviceName

from ..launching.threads import Pool
from .device_thread import DeviceThread, Work


def _of_process() -> int:
    return machine.usable_memory()


class Device:
    """A device of this process; work that is submitted to it runs in order on a thread of its own.

    ``backend`` is the name of its back end.  Devices with the same ``memory`` read each
    other's arrays as they are.  ``is_automatic``: placement may choose it without being told.
    ``runs_kernels_alone``: library calls, branches and loops that are placed on it run on the
    devices that placement may choose.
    ``cores`` are the CPUs that it keeps to, ``threads`` how many of them its kernels use at once;
    where that is None, they use the threads of the process on any CPU.
    ``memory_bytes`` says how large its memory is; 0: not known.
    """

    def __init__(
        self, name: DeviceName, backend: str, cores: tuple[int, ...] = (), memory: str = "host",
        is_automatic: bool = True, threads: int | None = None, runs_kernels_alone: bool = False,
        memory_bytes: Callable[[], int] = _of_process,
    ) -> None:
        self.name, self.backend, self.cores, self.memory = name, backend, cores, memory
        self.is_automatic, self.threads, self.memory_bytes = is_automatic, threads, memory_bytes
        self.runs_kernels_alone = runs_kernels_alone
        self._pool = None if threads is None else Pool(f"{name.short}-worker", threads, cores)
        self._thread = DeviceThread(str(name), () if threads is None else cores, self._pool)

    def submit(self, work: Work) -> None:
        """Run this on the device's thread, after earlier work; it must not raise.

        Where no thread can be started, it has run when this returns.
        """
        self._thread.submit(work)

    def runs(self, work: Work) -> bool:
        """Whether its thread runs that now."""
        return self._thread.runs(work)

    def interrupt(self, kind: type[BaseException], work: Work | None = None) -> bool:
        """Have an exception raised in the work of the device's thread; whether there is any.

        Given ``work``, only if it is that.  The exception ends the work, as far as the device is
        concerned: it is not reported.  It is raised at the next instruction of Python's, and ten
        times a second in native loops; a wait without a time limit is not ended.
        """
        return self._thread.interrupt(kind, work)

    def resize(self, threads: int) -> None:
        """Let kernels use that many threads."""
        if self._pool is not None:
            self.threads = threads
            self._pool.resize(threads)

    def close(self) -> None:
        """End the thread after submitted work; more work would start another."""
        self._thread.close()

    def __repr__(self) -> str:
        return f"<{self.name}>"
