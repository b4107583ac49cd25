"""Pinned memory, through which large arrays go between NumPy and a GPU while its kernels run.

CUDA copies from and to memory of the host that is pinned without anybody waiting, beside kernels
and in both directions at once; memory that is not is copied in its stream, when all before it is
done, through buffers of the driver's own.  So each direction has a stream here and a ring of pinned
buffers.  An array is cut into pieces: the host copies the next one to its buffer while the GPU
fetches the last one from another.  Buffers are made when they are first needed; where all that
there may be are in use, who needs one waits.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from fusec.core import gpus, locks, log

from .driver import GpuDriver

# Arrays from here on go this way.  It costs the host one more copy, at some 10 GB/s beside the
# GPU's, and some 30 us of Python for streams and events.  What it may save is the time of the copy
# itself, in which kernels run: 30 us at 10 GB/s are 300 KB.  Three times that is certain to pay.
# Not measured on a GPU yet.
LEAST_BYTES = 1 << 20
PIECE = 1 << 20  # bytes of a buffer: 40 us at 25 GB/s, of which asking for it takes a fifth
MOST = 8  # buffers of each direction
TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind
_NO_MEMORY = 2  # cudaErrorMemoryAllocation


class _Buffer:
    """One; ``passed`` is recorded behind each copy that uses it."""

    __slots__ = ("bytes", "passed", "pointer")

    def __init__(self, pointer: Any, passed: Any) -> None:
        self.pointer, self.passed = pointer, passed
        self.bytes = np.frombuffer(pointer, np.uint8, PIECE)


class Ring:
    """The buffers of one direction, the one that was used last at the end.

    All of it is for who holds the lock.  A copy that is interrupted anywhere (Ctrl-C, a time-out)
    may leave a piece whose event was not recorded.  Nobody reads that piece, and the stream does
    the buffer's next copy after it.
    """

    def __init__(self, driver: GpuDriver, kind: int) -> None:
        self.driver, self.kind = driver, kind
        self.lock = locks.Lock()
        self.refused = ""  # why there are not more
        self._buffers: deque[_Buffer] = deque()
        self._stream: Any = None

    @property
    def stream(self) -> Any:
        """The stream of its copies."""
        if self._stream is None:
            with self.driver.device:
                self._stream = self.driver.cupy.cuda.Stream(non_blocking=True)
        return self._stream

    def __len__(self) -> int:
        return len(self._buffers)

    def next(self, held: int = 0) -> _Buffer | None:
        """A buffer that is free; None: there is none but those that were given last, so many of
        which are still held, and can be no more."""
        has_other = len(self._buffers) > held
        if not has_other or not self._buffers[0].passed.done:
            made = self._made()
            if made is not None:
                self._buffers.append(made)
                return made
        if not has_other:
            return None
        self._buffers[0].passed.synchronize()
        self._buffers.rotate(-1)
        return self._buffers[-1]

    def copy(self, buffer: _Buffer, address: int, nbytes: int) -> None:
        """Ask for a copy between the buffer and memory of the GPU."""
        host = buffer.pointer.ptr
        to, source = (address, host) if self.kind == TO_DEVICE else (host, address)
        self.driver.cupy.cuda.runtime.memcpyAsync(to, source, nbytes, self.kind, self.stream.ptr)
        buffer.passed.record(self.stream)

    def _made(self) -> _Buffer | None:
        """One more, where there may be and the system has the memory."""
        if len(self._buffers) >= MOST or self.refused:
            return None
        cuda = self.driver.cupy.cuda
        try:
            return _Buffer(cuda.alloc_pinned_memory(PIECE), cuda.Event(disable_timing=True))
        except self.driver.faults.kinds as error:
            if getattr(error, "status", _NO_MEMORY) != _NO_MEMORY:
                raise
            self._refuse(error)
            return None

    def _refuse(self, error: Exception) -> None:
        have = f"with {len(self)} buffers of {MOST}" if self._buffers else "in the kernels' stream"
        self.refused = f"no pinned memory ({error}): large arrays are copied {have}"
        way = "to" if self.kind == TO_DEVICE else "from"
        note = f"copies {way} GPU {self.driver.number}: {self.refused}"
        gpus.notes.append(note)  # `fusec.devices()` and `fusec.explain` say it, too
        log.write(log.WARN, note)


class PinnedCopies:
    """Copies of large arrays; each answers whether it could, and has done nothing where not.

    It cannot where there is no pinned memory, where a signal's handler copies in the middle of
    another copy of its thread, and in a stream that captures, whose copies are done later, again
    and again.
    """

    def __init__(self, driver: GpuDriver) -> None:
        self.driver = driver
        self.to_device, self.to_host = Ring(driver, TO_DEVICE), Ring(driver, TO_HOST)

    def is_for(self, nbytes: int) -> bool:
        """Whether so many bytes are worth it."""
        return nbytes >= LEAST_BYTES and not self.driver.is_capturing(self.driver.stream)

    def send(self, address: int, source: np.ndarray) -> bool:
        """Copy bytes to memory that no stream but ours uses yet; the program's stream waits for
        it, the caller until the host's memory has been read."""
        ring, stream = self.to_device, self.driver.stream
        if ring.lock.is_mine():
            return False
        with ring.lock, self.driver.device:
            buffer = None
            for start in range(0, len(source), PIECE):
                buffer = ring.next()
                if buffer is None:
                    return False
                piece = source[start:start + PIECE]
                buffer.bytes[:len(piece)] = piece
                ring.copy(buffer, address + start, len(piece))
            if buffer is not None:
                stream.wait_event(buffer.passed)  # the last piece comes last
        return True

    def fetch(self, target: np.ndarray, address: int) -> bool:
        """Copy bytes that the GPU has computed; returns when they are there."""
        ring = self.to_host
        if ring.lock.is_mine():
            return False
        with ring.lock, self.driver.device:
            try:
                return self._fetched(ring, target, address)
            except BaseException:
                ring.stream.synchronize()  # its memory may be given back now
                raise

    def _fetched(self, ring: Ring, target: np.ndarray, address: int) -> bool:
        asked: deque[tuple[_Buffer, np.ndarray]] = deque()
        for start in range(0, len(target), PIECE):
            piece = target[start:start + PIECE]
            if len(asked) == MOST:
                _take(*asked.popleft())
            buffer = ring.next(len(asked))
            if buffer is None and asked:
                _take(*asked.popleft())
                buffer = ring.next(len(asked))
            if buffer is None:
                return False
            ring.copy(buffer, address + start, len(piece))
            asked.append((buffer, piece))
        while asked:
            _take(*asked.popleft())
        return True


def _take(buffer: _Buffer, piece: np.ndarray) -> None:
    """Copy a piece from its buffer when it is there."""
    buffer.passed.synchronize()
    piece[...] = buffer.bytes[:len(piece)]
