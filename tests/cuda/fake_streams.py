"""CuPy's streams, events, graphs and memory pool on the emulated device, which refuse the calls
that CUDA refuses.

Each stream does its work late and in order; who waits for a stream or an event makes the device do
that, and work of other streams that it depends on, or more, as the device's seed has it.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from fusec.codegen.cuda.emulation import streams as emulated
from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.cuda.emulation.work import EmulatedWork

Ask = Callable[[int], None]  # asks the device's stream of this number for something


class CUDARuntimeError(RuntimeError):
    """``status`` as CuPy has it."""

    def __init__(self, text: str, status: int = 999) -> None:
        super().__init__(text)
        self.status = status


class Does(EmulatedWork):
    """Work that is a function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function

    def __call__(self) -> None:
        self.function()


class OutOfMemoryError(MemoryError):
    pass


def refused() -> CUDARuntimeError:
    return CUDARuntimeError(
        "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")


class Graph:
    """The work of a stream while it was capturing, with the arguments of then."""

    def __init__(self, streams: Streams, launches: Sequence[Ask]) -> None:
        self.streams, self.launches = streams, launches

    def launch(self, stream: Any = None) -> None:
        stream = stream or self.streams.current
        self.streams.look()
        if stream.is_capturing():
            raise refused()
        self.streams.calls.append("graph")
        for launch in self.launches:
            launch(stream.ptr)


class Event:
    """CuPy's: a moment of the stream that it was recorded in last."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.moment: emulated.Event | None = None
        self.is_captured = False

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or self.streams.current
        self.streams.look()
        self.is_captured = stream.is_capturing()  # a part of the graph, no moment of now
        if not self.is_captured:
            self.moment = self.streams.driver.streams.record(stream.ptr)

    @property
    def done(self) -> bool:
        """The device may have come to it by now, or not."""
        self.refuse_captured()
        if self.moment is not None and self.streams.random.random() < 0.3:
            self.synchronize()
        return self.moment is None or self.moment.is_done

    def refuse_captured(self) -> None:
        self.streams.look()
        if self.is_captured:
            raise CUDARuntimeError("cudaErrorCapturedEvent: the event was captured")

    def synchronize(self) -> None:
        self.refuse_captured()
        if self.moment is not None:
            self.streams.driver.synchronize(self.moment)


class Stream:
    """One of CuPy's; it is the device's stream of that number."""

    def __init__(self, streams: Streams, ptr: int) -> None:
        self.streams, self.ptr = streams, ptr
        self.recorded: list[Ask] | None = None
        self.capturing_thread, self.before = 0, list[Stream]()

    def __enter__(self) -> Stream:
        self.before.append(self.streams.current)
        self.streams.current = self
        return self

    def __exit__(self, *error: object) -> None:
        self.streams.current = self.before.pop()

    def synchronize(self) -> None:
        self.streams.look()
        if self.is_capturing():
            raise refused()
        driver = self.streams.driver
        driver.synchronize(driver.streams.record(self.ptr))

    def wait_event(self, event: Event) -> None:
        if self.is_capturing():
            raise refused()
        event.refuse_captured()  # CUDA makes this stream capture, too
        if event.moment is not None:
            self.streams.driver.streams.wait(event.moment, self.ptr)

    def is_capturing(self) -> bool:
        return self.recorded is not None

    def begin_capture(self) -> None:
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.is_capturing():
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is capturing")
        self.recorded, self.capturing_thread = [], threading.get_ident()

    def end_capture(self) -> Graph:
        if self.recorded is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is not capturing")
        recorded, self.recorded = self.recorded, None
        self.streams.calls.append("captured")
        return Graph(self.streams, recorded)

    def ask(self, launch: Ask) -> None:
        """Let the device do it later, or record it."""
        self.streams.look()
        if self.recorded is not None:
            self.recorded.append(launch)
        else:
            launch(self.ptr)

    def does(self, function: Callable[[], Any]) -> None:
        """The same of a function."""
        queues = self.streams.driver.streams
        self.ask(lambda queue: queues.ask(Does(function), queue))


class Streams:
    """The streams of a process; ``current`` is CuPy's, of this thread."""

    def __init__(self, driver: EmulatedDriver, calls: list[str]) -> None:
        self.driver, self.calls, self.every = driver, calls, list[Stream]()
        self.random = random.Random(driver.seed)
        self._of_thread = threading.local()
        self.is_broken = False  # by a kernel's fault, after which CUDA refuses everything
        self.left = -1  # calls of CUDA until that shows
        self.first = self.new()

    def look(self) -> None:
        """The beginning of each call of CUDA."""
        self.is_broken, self.left = self.is_broken or self.left == 0, self.left - 1
        if self.is_broken:
            raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access", 700)

    @property
    def current(self) -> Stream:
        stream: Stream = getattr(self._of_thread, "stream", self.first)
        return stream

    @current.setter
    def current(self, stream: Stream) -> None:
        self._of_thread.stream = stream

    def new(self, non_blocking: bool = False) -> Stream:
        self.every.append(Stream(self, 6 + len(self.every)))
        return self.every[-1]

    def of(self, ptr: int) -> Stream:
        return next(s for s in self.every if s.ptr == ptr)

    @property
    def is_capturing(self) -> bool:
        """Whether this thread captures; CuPy lets the others work."""
        return any(s.is_capturing() and s.capturing_thread == threading.get_ident()
                   for s in self.every)


class Pool:
    """Memory; one that ``keeps`` gives freed memory to the next who asks for as much on the same
    stream, whose work may use it at once.  Others let it go as CUDA does: when the device has done
    everything."""

    def __init__(self, driver: EmulatedDriver, streams: Streams, room: int) -> None:
        self.driver, self.streams, self.room, self.keeps = driver, streams, room, False
        self.free: dict[tuple[int, int], list[int]] = {}

    def alloc(self, nbytes: int) -> MemoryPointer:
        """``cupy.cuda.alloc``."""
        if nbytes > self.room:
            raise OutOfMemoryError(nbytes)
        return MemoryPointer(Memory(self, nbytes), 0)

    def take(self, nbytes: int, stream: int) -> int:
        kept = self.free.get((stream, _rounded(nbytes)))
        if kept:
            return kept.pop()
        self.streams.look()
        if self.streams.is_capturing:  # this is cudaMalloc
            raise refused()
        return self.driver.allocate(_rounded(nbytes) if self.keeps else nbytes)

    def give(self, address: int, nbytes: int, stream: int) -> None:
        if self.keeps:
            self.free.setdefault((stream, _rounded(nbytes)), []).append(address)
            return
        queues = self.driver.streams
        for other in [s.ptr for s in self.streams.every if s.ptr != stream]:
            queues.wait(queues.record(other), stream)
        self.driver.free(address, stream)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 512) * 512


class Memory:
    """Memory of an array's own, or a borrowed block; it goes back when nobody holds it."""

    def __init__(self, pool: Pool, nbytes: int) -> None:
        self.pool, self.size, self.stream = pool, nbytes, pool.streams.current.ptr
        self.ptr = pool.take(nbytes, self.stream)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "ptr") and not is_ending():
            self.pool.give(self.ptr, self.size, self.stream)


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.offset = mem, mem.ptr + offset, offset

    def __add__(self, nbytes: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + nbytes)
