"""The driver of the emulated device: see `fusec.codegen.cuda.driver.driver.Driver`."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.codegen.cuda.module import CudaKernel, CudaModule, CudaParam
from fusec.core import machine

from ..driver.driver import Dim3
from . import launches, loading
from .arena import Arena
from .faults import KernelFault, MemoryRange
from .loading import EmulatedModule
from .streams import Event, Streams
from .work import Around, CopyIn, CopyOut, EmulatedFaults, EmulatedKernel, Release

_WORDS: dict[str, Any] = {
    "pointer": ctypes.c_uint64, "int32": ctypes.c_int32, "int64": ctypes.c_int64}
_LEAST = {"pointer": 0, "int32": -(1 << 31), "int64": -(1 << 63)}
_MOST = {"pointer": (1 << 64) - 1, "int32": (1 << 31) - 1, "int64": (1 << 63) - 1}


def _simply(run: Callable[[], None]) -> None:
    run()


class EmulatedDriver:
    """Kernels on this machine's CPU, late, on memory of their own.

    With a ``seed`` other than 0 blocks, threads and streams take turns in an order that it decides,
    another for each launch.

    A kernel that fails spoils the arrays it writes, and so do their readers: who copies one from
    the device gets the error, whoever else was waiting when it happened.
    """

    name = "cuda host"
    compiler = "c++"

    def __init__(self, seed: int = 0, limit: int | None = None) -> None:
        self.seed = seed
        self.arena = Arena(machine.emulated_memory() or sys.maxsize if limit is None else limit)
        self.streams = Streams(seed)
        self.launched = 0
        self.mapped: dict[int, int] = {}  # the host's memory that kernels may read: start and end
        self._faults = EmulatedFaults()
        self._loaded: weakref.WeakValueDictionary[str, EmulatedModule] = (
            weakref.WeakValueDictionary())

    def reseed(self, seed: int) -> None:
        """Let another seed decide the order of unordered work."""
        self.seed = seed
        self.streams.reseed(seed)

    def compile(self, module: CudaModule) -> EmulatedModule:
        """The module, loaded; raises `NoCompilerError` and `CompilationError`."""
        key = f"{module.digest} {' '.join(kernel.name for kernel in module.kernels)}"
        loaded = self._loaded.get(key)
        if loaded is None:
            loaded = self._loaded[key] = loading.load(module)
        return loaded

    def launch(
        self, loaded: EmulatedModule, kernel: CudaKernel, grid: Dim3, block: Dim3,
        shared_bytes: int, args: Sequence[int], stream: int = 0, around: Around = _simply,
    ) -> None:
        """Ask for a launch, which ``around`` is given to call.  Faults that a GPU's driver sees at
        once are raised here (`KernelFault`: sizes that cannot be); those of a kernel, when somebody
        waits for it."""
        words = _words(kernel, args)
        operands = [self._operand(number, param, arg) for number, (param, arg) in enumerate(
            zip(kernel.params, args, strict=True)) if param.kind == "pointer"]
        self.launched += 1
        asked = launches.EmulatedLaunch(loaded, kernel, grid, block, shared_bytes, words, operands,
                                        _mixed(self.seed, self.launched))
        self.streams.ask(EmulatedKernel(asked, operands, self._faults, around), stream)

    def bound(self, *launch: Any) -> Callable[[], None]:
        """See `Driver.bound`."""
        return partial(self.launch, *launch)

    def joined(self, launches: Sequence[Callable[[], None]]) -> None:
        """See `Driver.joined`: a launch is asked for as quickly."""

    def _operand(self, number: int, param: CudaParam, address: int) -> MemoryRange:
        """The block that an argument points to.  There may be none, where the kernel does not
        follow it: the first of no elements lies anywhere."""
        block = self.arena.block_at(address)
        if block is None:
            end = next((e for s, e in self.mapped.items() if s <= address < e), address)
            return MemoryRange(address, end, number, param.is_written)
        return MemoryRange(block.start, block.end, number, param.is_written)

    # -- memory

    def allocate(self, nbytes: int, arriving: bool = False) -> int:
        try:
            return self.arena.allocate(nbytes)
        except MemoryError:
            self.streams.synchronize()  # what is to be freed is freed then
            return self.arena.allocate(nbytes)

    def free(self, address: int, stream: int = 0) -> None:
        block = self.arena.block_at(address)
        if block is None or block.start != address:
            raise ValueError(f"free: nothing of the device's begins at {hex(address)}")
        self.streams.ask(Release(block, self.arena, self._faults), stream)

    def address_of(self, array: Any) -> int | None:
        """Where an array's first element lies in the device's memory; None: it is not there."""
        if not isinstance(array, np.ndarray):
            return None
        address = array.ctypes.data
        return None if self.arena.block_at(address) is None else address

    def copy_in(self, address: int, array: np.ndarray, stream: int = 0) -> None:
        kept = np.array(array, order="C")
        self._check(address, kept.nbytes)
        self.streams.ask(CopyIn(address, kept), stream)

    def moment(self, nbytes: int) -> None:
        """None: a copy waits for all."""

    def copy_out(
        self, array: np.ndarray, address: int, after: Any = None, stream: int = 0
    ) -> None:
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError("copy_out: give a C-contiguous array that may be written")
        start = self._check(address, array.nbytes)
        copy = CopyOut(array, address, start, self._faults)
        self.streams.ask(copy, stream)
        self.streams.synchronize()
        if copy.error is not None:
            raise self._faults.told(copy.error)

    def _check(self, address: int, nbytes: int) -> int:
        """The start of the block that holds these bytes; raises `KernelFault` where none does."""
        block = self.arena.block_at(address)
        if block is None or address + nbytes > block.end:
            raise KernelFault("a copy goes beyond the device's memory", values=[
                ("address", hex(address)), ("bytes", nbytes),
                ("block", "none" if block is None else f"{block.nbytes} bytes")])
        return block.start

    def synchronize(self, until: Event | None = None) -> None:
        """Do the work asked for, as far as the event, if there is one; raises the first fault of
        kernels that nobody was told of."""
        self.streams.synchronize(until)
        error = self._faults.first_untold()
        if error is not None:
            raise error

    wait = synchronize  # between slices of a kernel handlers run

    def mark(self) -> None:
        """None: work is done when somebody waits for all of it."""

    def reach(self, mark: Any) -> None:
        """See `Driver.reach`."""

    def resident_blocks(
        self, loaded: EmulatedModule, kernel: CudaKernel, threads: int, shared_bytes: int
    ) -> int:
        """As many as there are stacks for, and not too many."""
        return max(1, min(launches.MOST_RESIDENT, launches.MOST_THREADS // threads))

    def flag(self) -> EmulatedFlag:
        return EmulatedFlag(self.arena)


class EmulatedFlag:
    """See `Flag`: a word of the device's, which is this machine's memory."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.address = arena.allocate(8)
        self._word = ctypes.c_uint32.from_address(self.address)
        self._word.value = 0

    def raise_it(self) -> None:
        self._word.value = 1

    def give_back(self) -> None:
        block = self._arena.block_at(self.address)
        if block is not None:
            self._arena.free(block)


def _words(kernel: CudaKernel, args: Sequence[int]) -> list[Any]:
    """The arguments as a launch has them; raises ``ValueError`` for numbers that do not fit."""
    if len(args) != len(kernel.params):
        raise ValueError(f"kernel {kernel.name} has {len(kernel.params)} parameters, and was given "
                         f"{len(args)} arguments")
    for param, arg in zip(kernel.params, args, strict=True):
        if not _LEAST[param.kind] <= arg <= _MOST[param.kind]:
            raise ValueError(f"parameter {param.name} of kernel {kernel.name} is an {param.kind}, "
                             f"and was given {arg}")
    return [_WORDS[param.kind](arg) for param, arg in zip(kernel.params, args, strict=True)]


def _mixed(seed: int, number: int) -> int:
    """Another seed for each launch; 0 stays 0."""
    if not seed:
        return 0
    return (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9) % (1 << 64) or 1
