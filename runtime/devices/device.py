"""One device: its name, its resources, and the thread that runs its work in order."""

from __future__ import annotations

from fusec.codegen import backends
from fusec.core import machine
from fusec.errors import InternalError
from fusec.ir.device_names import DeviceName

from ..launching.threads import Pool
from .device_thread import DeviceThread, Work


class Device:
    """A device of this process; work that is submitted to it runs in order on a thread of its own.

    ``backend`` is the name of its back end.  Devices with the same ``memory`` read each
    other's arrays as they are.  What else its type decides is in ``kind``.
    ``cores`` are the CPUs that it keeps to, ``threads`` how many of them its kernels use at once;
    where that is None, they use the threads of the process on any CPU.
    """

    def __init__(
        self, name: DeviceName, cores: tuple[int, ...] = (), threads: int | None = None
    ) -> None:
        kind = backends.kind_of(name.type)
        if kind is None:
            raise InternalError(f"no kind of devices is registered for {name}")
        self.name, self.kind, self.cores, self.threads = name, kind, cores, threads
        self.backend = str(name.type).lower()
        self.memory = f"{self.backend}:{name.index}" if self.runs_kernels_alone else "host"
        self._pool = None if threads is None else Pool(f"{name.short}-worker", threads, cores)
        self._thread = DeviceThread(str(name), () if threads is None else cores, self._pool)

    @property
    def is_remote(self) -> bool:
        """Whether it is another process's: nothing is submitted to it here."""
        return False

    @property
    def is_automatic(self) -> bool:
        """Whether placement may choose it without being told."""
        return self.kind.is_automatic

    @property
    def runs_kernels_alone(self) -> bool:
        """Whether library calls, branches and loops that are placed on it run on the devices that
        placement may choose: NumPy's functions cannot read memory of its own."""
        return self.kind.memory is not None

    def memory_bytes(self) -> int:
        """How large its memory is; 0: not known."""
        return (self.kind.memory or machine.usable_memory)()

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
