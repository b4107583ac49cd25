"""Faults of kernels on a GPU, known when somebody waits for them: which they were.

After such a fault CUDA refuses everything else in the process.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fusec.core.records import replace
from fusec.errors import FusecError, user_error

from ...kernels.loop_ir import Kernel
from ..launches import Named

if TYPE_CHECKING:
    from .cupy_driver import CupyDriver

MOST_NAMED = 16
_NO_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY


class Faults:
    """The kernels that a GPU was asked to run since somebody waited for it last; ``asked`` counts
    them from the first on."""

    def __init__(self, number: int, kinds: tuple[type[Exception], ...]) -> None:
        """``kinds`` are the classes of errors that CUDA raises."""
        self.number, self.kinds, self.asked = number, kinds, 0
        self._latest: deque[tuple[int, Named]] = deque(maxlen=MOST_NAMED)
        self._process = os.getpid()

    def note(self, kernels: Iterable[Named]) -> None:
        """These are asked for."""
        for kernel in kernels:
            self.asked += 1
            self._latest.append((self.asked, kernel))

    @staticmethod
    def is_for_memory(error: Exception) -> bool:
        """Whether CUDA had none: the GPU goes on."""
        return getattr(error, "status", None) == _NO_MEMORY

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Around calls of CUDA that may report a fault of earlier work."""
        try:
            yield
        except self.kinds as error:
            raise self.told(error) from error

    def told(self, error: Exception) -> FusecError:
        """The program's error for one of CUDA that any kernel may have caused."""
        return self.of(error, [kernel for _, kernel in self._latest.copy()])

    @contextmanager
    def of_waiting(self, asked: int | None = None) -> Iterator[None]:
        """Around a wait for all kernels, or the first so many."""
        until = self.asked if asked is None else asked
        with self.naming():
            yield
        with contextlib.suppress(IndexError):  # another thread was quicker
            while self._latest[0][0] <= until:
                self._latest.popleft()

    @contextmanager
    def of_launch(self, kernel: Kernel) -> Iterator[None]:
        """Around a launch, which may be refused."""
        self.note([kernel])
        try:
            yield
        except self.kinds as error:
            raise self.of(error, [kernel]) from error

    def of(self, error: Exception, kernels: Sequence[Named]) -> FusecError:
        """The program's error for one of CUDA that one of these kernels has caused."""
        named = dict.fromkeys(
            f"{k.name}{f', line {k.locs[0]}' if k.locs else ''}" for k in kernels)
        if os.getpid() != self._process:
            return user_error(
                RuntimeError, f"work on GPU {self.number} has failed: {error}",
                cure="CUDA cannot be used in a forked child of a process that has used it: start "
                     "processes with multiprocessing.get_context('spawn')")
        which = [("kernel" if len(named) == 1 else "one of these kernels", "; ".join(named))]
        loc = kernels[0].locs[0] if len(named) == 1 and kernels[0].locs else None
        return user_error(
            RuntimeError, f"work on GPU {self.number} has failed: {error}", loc,
            "this is a fault of fusec, or of the machine: report it with kernel.asm['cu']; the "
            "process cannot use the GPU any more", values=which if named else [])


class GpuDriverFor:
    """The GPU's driver for one kernel of a program."""

    def __init__(self, driver: CupyDriver, kernel: Kernel) -> None:
        self._driver, self._kernel = driver, kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def launch(self, *launch: Any) -> None:
        """See `CupyDriver.launch`."""
        self.bound(*launch)()

    def bound(self, *launch: Any) -> Any:
        """See `CupyDriver.bound`."""
        return replace(self._driver.bound(*launch), kernel=self._kernel)
