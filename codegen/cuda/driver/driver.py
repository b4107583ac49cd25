"""The driver: the back end's interface to a machine with CUDA, or to one that acts as if."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..module import CudaKernel, CudaModule

Dim3 = tuple[int, int, int]


class Flag(Protocol):
    """A word that a kernel reads while it runs, at ``address``."""

    address: int

    def raise_it(self) -> None:
        """It is 1, at once."""

    def give_back(self) -> None:
        """No kernel reads it any more."""


class Driver(Protocol):
    """Compiles modules, launches their kernels, and owns the device's memory.

    Launches and copies are done in the order in which they are asked for; only `copy_out` and
    `synchronize` wait for them.  Addresses are the device's: integers that kernels get as pointers.
    """

    name: str
    compiler: str

    def compile(self, module: CudaModule) -> Any:
        """The module, loaded for `launch`.  One that was compiled before may be shared."""

    def launch(
        self, loaded: Any, kernel: CudaKernel, grid: Dim3, block: Dim3, shared_bytes: int,
        args: Sequence[int],
    ) -> None:
        """Run a kernel of a loaded module; ``args`` are addresses and integers, one a parameter.

        ``shared_bytes`` is the size of its ``extern __shared__`` array.
        """

    def bound(
        self, loaded: Any, kernel: CudaKernel, grid: Dim3, block: Dim3, shared_bytes: int,
        args: Sequence[int],
    ) -> Callable[[], None]:
        """The same `launch` as a function, for one that is asked for again and again."""

    def joined(self, launches: Sequence[Callable[[], None]]) -> Callable[[], None] | None:
        """Several `bound` launches as one; None: this driver has no such thing."""

    def allocate(self, nbytes: int, arriving: bool = False) -> int:
        """The address of fresh memory, aligned to 256 bytes; raises ``MemoryError``.

        ``arriving``: before anything else uses it, `copy_in` fills it.
        """

    def free(self, address: int) -> None:
        """Give memory back, after all work asked for until now."""

    def address_of(self, array: Any) -> int | None:
        """Where an array's first element lies in the device's memory; None: it is not there."""

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Copy a contiguous host array to the device; the array may change once this returns."""

    def moment(self, nbytes: int) -> Any:
        """Now, as the device's work goes: for `copy_out` of so many bytes; may be None."""

    def copy_out(self, array: np.ndarray, address: int, after: Any = None) -> None:
        """Copy from the device to a contiguous host array; returns when it is there.

        ``after``: the `moment` from which on it holds the bytes to copy.
        """

    def synchronize(self) -> None:
        """Wait for all that has been asked for; raises faults of meanwhile."""

    def wait(self) -> None:
        """The same, while Python's handlers of signals run: for what may take long."""

    def mark(self) -> Any:
        """Now, as the device's work goes; None: nobody can wait for it."""

    def reach(self, mark: Any) -> None:
        """Wait until the device has come to a mark, while handlers run."""

    def resident_blocks(
        self, loaded: Any, kernel: CudaKernel, threads: int, shared_bytes: int
    ) -> int:
        """How many blocks of a kernel the device has room for at once."""

    def flag(self) -> Flag:
        """A word of the host's, which is 0, for one kernel."""


class GpuDriver(Protocol):
    """The interface between parts of a GPU's driver; see `.cupy_driver.CupyDriver`."""

    cupy: Any
    device: Any
    number: int
    capability: int
    faults: Any
    launched: int

    @property
    def stream(self) -> Any: ...

    def current_stream(self) -> Any: ...
    def with_room(self, nbytes: int, ask: Callable[[], Any], stream: Any = None) -> Any: ...
    def is_capturing(self, stream: Any) -> bool: ...
    def compile(self, module: CudaModule) -> Any: ...
    def captured(self, launches: Sequence[Any]) -> Any: ...
    def note(self, kernels: Sequence[Any], count: int) -> None: ...
    def note_no_graph(self, error: Exception) -> None: ...
    def synchronize(self) -> None: ...
