"""Memory of a GPU that a stream of copies fills and the kernels of another stream read.

CuPy's pool gives memory back to the stream that it was borrowed on, whose next work may use it at
once.  That is right where one stream does everything.  Memory for arrays that arrive is borrowed on
the stream of copies, so that a copy waits for no kernel; so it is kept after its end until kernels
that were asked for before have run, which an event says.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

from .driver import GpuDriver

R = TypeVar("R")
# Bytes that are kept for kernels which have not run yet; who wants more waits for the first of
# them (but two arrays of any size may be there in turn).  So a program that asks for work faster
# than it is done does not fill the GPU.
MOST_BYTES = 256 << 20


class _Kept:
    """Memory that nobody holds; kernels are done with it when the event has passed.  None: it could
    not be recorded yet."""

    __slots__ = ("passed", "pointer", "stream")

    def __init__(self, pointer: Any, stream: Any, passed: Any | None) -> None:
        """``stream``: whose kernels have read it."""
        self.pointer, self.stream, self.passed = pointer, stream, passed

    @property
    def nbytes(self) -> int:
        return int(self.pointer.mem.size)


class ArrivingMemory:
    """See the module docstring.

    Finalizers let memory go, which run anywhere: nothing here takes a lock.
    """

    def __init__(self, driver: GpuDriver) -> None:
        self.driver = driver
        self._kept: list[_Kept] = []
        self._process = os.getpid()

    def borrow(self, nbytes: int, ask: Callable[[], R]) -> R:
        """The result of ``ask``, once buffers that have arrived are given back."""
        self.give_back()
        while self._kept and sum(k.nbytes for k in self._kept.copy()) > max(MOST_BYTES, nbytes):
            self.wait_for_first()
        return ask()

    def let_go(self, pointer: Any, stream: Any) -> None:
        """Keep it until the stream has done its work until now."""
        if os.getpid() == self._process:  # a forked child has nothing on the GPU
            self._kept.append(_Kept(pointer, stream, self._moment_of(stream)))

    def give_back(self) -> None:
        """Let CuPy's pool have the memory that kernels are done with."""
        for kept in self._kept.copy():
            if kept.passed is None:
                kept.passed = self._moment_of(kept.stream)
            elif kept.passed.done:
                self._drop(kept)

    def wait(self) -> None:
        """Until all of it has been given back."""
        while self._kept:
            self.wait_for_first()

    def wait_for_first(self) -> None:
        """Until one of them has been given back."""
        for kept in self._kept[:1]:
            with self.driver.faults.naming():
                (kept.passed or kept.stream).synchronize()
            self._drop(kept)

    def _drop(self, kept: _Kept) -> None:
        with contextlib.suppress(ValueError):  # another thread was quicker
            self._kept.remove(kept)

    def _moment_of(self, stream: Any) -> Any | None:
        """An event of now; None where the stream captures, since it would be a part of the graph,
        and where CUDA refuses, as it does after a fault, of which others tell."""
        try:
            if self.driver.is_capturing(stream):
                return None
            with self.driver.device:
                passed = self.driver.cupy.cuda.Event(disable_timing=True)
                passed.record(stream)
        except self.driver.faults.kinds:
            return None
        return passed
