"""CuPy's streams, graphs and memory pool on the emulated device, which refuse what CUDA refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from fusec.codegen.cuda.emulation.driver import EmulatedDriver


class CUDARuntimeError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


def refused() -> CUDARuntimeError:
    return CUDARuntimeError(
        "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")


class Graph:
    """What a stream was asked for while it was capturing, with the arguments of then."""

    def __init__(self, streams: Streams, launches: Sequence[Callable[[], None]]) -> None:
        self.streams, self.launches = streams, launches

    def launch(self, stream: Any = None) -> None:
        if (stream or self.streams.current).is_capturing():
            raise refused()
        self.streams.calls.append("graph")
        for launch in self.launches:
            launch()


class Stream:
    """One of CuPy's; all are one stream of the device."""

    def __init__(self, streams: Streams, ptr: int) -> None:
        self.streams, self.ptr = streams, ptr
        self.recorded: list[Callable[[], None]] | None = None

    def __enter__(self) -> Stream:
        self.before, self.streams.current = self.streams.current, self
        return self

    def __exit__(self, *error: object) -> None:
        self.streams.current = self.before

    def synchronize(self) -> None:
        if self.is_capturing():
            raise refused()
        self.streams.driver.synchronize()

    def is_capturing(self) -> bool:
        return self.recorded is not None

    def begin_capture(self) -> None:
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.is_capturing():
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is capturing")
        self.recorded = []

    def end_capture(self) -> Graph:
        if self.recorded is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is not capturing")
        recorded, self.recorded = self.recorded, None
        self.streams.calls.append("captured")
        return Graph(self.streams, recorded)

    def ask(self, launch: Callable[[], None]) -> None:
        """Do it, or record it."""
        if self.recorded is not None:
            self.recorded.append(launch)
        else:
            launch()


class Streams:
    """The streams of a process; ``current`` is CuPy's."""

    def __init__(self, driver: EmulatedDriver, calls: list[str]) -> None:
        self.driver, self.calls, self.every = driver, calls, list[Stream]()
        self.current = self.new()

    def new(self, non_blocking: bool = False) -> Stream:
        self.every.append(Stream(self, 6 + len(self.every)))
        return self.every[-1]

    def of(self, ptr: int) -> Stream:
        return next(s for s in self.every if s.ptr == ptr)

    @property
    def is_capturing(self) -> bool:
        return any(s.is_capturing() for s in self.every)


class Pool:
    """Memory; one that ``keeps`` gives what was let go to the next who asks for as much."""

    def __init__(self, driver: EmulatedDriver, streams: Streams, room: int) -> None:
        self.driver, self.streams, self.room, self.keeps = driver, streams, room, False
        self.free: dict[int, list[int]] = {}

    def alloc(self, nbytes: int) -> MemoryPointer:
        """``cupy.cuda.alloc``."""
        if nbytes > self.room:
            raise OutOfMemoryError(nbytes)
        return MemoryPointer(Memory(self, nbytes), 0)

    def take(self, nbytes: int) -> int:
        kept = self.free.get(_rounded(nbytes))
        if kept:
            return kept.pop()
        if self.streams.is_capturing:  # this is cudaMalloc
            raise refused()
        return self.driver.allocate(_rounded(nbytes) if self.keeps else nbytes)

    def give(self, address: int, nbytes: int) -> None:
        if self.keeps:
            self.free.setdefault(_rounded(nbytes), []).append(address)
        else:
            self.driver.free(address)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 512) * 512


class Memory:
    """Memory of an array's own, or what was borrowed; it goes back when nobody holds it."""

    def __init__(self, pool: Pool, nbytes: int) -> None:
        self.pool, self.size, self.ptr = pool, nbytes, pool.take(nbytes)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "ptr") and not is_ending():
            self.pool.give(self.ptr, self.size)


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.offset = mem, mem.ptr + offset, offset

    def __add__(self, nbytes: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + nbytes)
