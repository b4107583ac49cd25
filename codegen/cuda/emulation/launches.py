"""Launches on the emulated device."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

from fusec.codegen.cuda.module import CudaKernel

from .faults import Fault, FaultReport, KernelFault, MemoryRange
from .loading import EmulatedModule

Dim3 = tuple[int, int, int]
STACK_BYTES = 1 << 16
_BELOW = 1 << 20  # of the lowest stack: it takes what overruns that, until the launch says so
MOST_THREADS = 1024
MOST_RESIDENT = 4  # blocks that wait for each other
MOST_BLOCK: Dim3 = (1024, 1024, 64)
MOST_GRID: Dim3 = ((1 << 31) - 1, 65_535, 65_535)
MOST_SHARED = 232_448  # bytes of a block, on sm_90; static and dynamic together
_RUNNING, _OVER = 1, 3  # phases of cuda_host.cpp


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_size_t), ("end", ctypes.c_size_t),
                ("is_written", ctypes.c_uint32), ("unused", ctypes.c_uint32))


class _Launch(ctypes.Structure):
    """`EmulatedLaunch` of cuda_host.cpp."""

    _fields_ = (
        ("kernel", ctypes.c_void_p), ("args", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3), ("shared_bytes", ctypes.c_uint64),
        ("ranges", ctypes.c_void_p), ("range_count", ctypes.c_uint64),
        ("stacks", ctypes.c_void_p), ("stack_bytes", ctypes.c_uint64),
        ("stack_count", ctypes.c_uint64), ("shadow", ctypes.c_void_p),
        ("shadow_bytes", ctypes.c_uint64), ("seed", ctypes.c_uint64),
        ("is_cooperative", ctypes.c_uint64), ("phase", ctypes.c_uint64),
        ("report", FaultReport))
    kept: Any = None  # what it points to


class EmulatedLaunch:
    """A launch: `run` begins it, and goes on with it.

    ``words`` are the arguments, ``operands`` the device memory that they point to; with a ``seed``
    other than 0 blocks and threads run in an order of its own.
    """

    def __init__(
        self, loaded: EmulatedModule, kernel: CudaKernel, grid: Dim3, block: Dim3,
        shared_bytes: int, words: Sequence[ctypes._SimpleCData], operands: Sequence[MemoryRange],
        seed: int,
    ) -> None:
        check_sizes(kernel, grid, block, shared_bytes)
        self.loaded, self.kernel, self.operands = loaded, kernel, operands
        self._grid, self._block, self._shared_bytes = grid, block, shared_bytes
        self._words, self._seed = words, seed
        # Builtins enter and take things here: a signal's handler may run launches in between.
        self._made: dict[str, _Launch] = {}
        self._stacks: list[_Stacks] = []

    def run(self) -> None:
        """Run every thread of every block; raises `KernelFault`.

        Other exceptions in here (Ctrl-C, a time-out) leave it where it is, and the next call
        goes on there.
        """
        launch = self._made.get("launch") or self._made.setdefault("launch", self._prepared())
        while (phase := self.loaded.run(ctypes.addressof(launch))) != _OVER:
            if phase == _RUNNING:
                raise KernelFault(
                    f"kernel {self.kernel.name} was running in another thread when this process "
                    f"was forked, and its results are the other process's",
                    cure="fork where no other thread is in a call, or start processes anew "
                         "(multiprocessing's spawn)")
        while self._stacks:
            _spare.append(self._stacks.pop())
        if launch.report.kind:
            raise Fault(self.loaded, self.kernel, self.operands, launch.report).error()

    def give_up(self) -> None:
        """End it where it is: `run` has nothing to do any more."""
        for launch in self._made.values():
            launch.phase = _OVER

    def _prepared(self) -> _Launch:
        words, operands = self._words, self.operands
        pointers = (ctypes.c_void_p * max(len(words), 1))(*map(ctypes.addressof, words))
        ranges = (_Range * max(len(operands), 1))(*(
            _Range(o.start, o.end, o.is_written, 0) for o in operands))
        shadow = _shadow(self.loaded, self._shared_bytes)
        stacks = _spare.pop() if _spare else _Stacks()
        self._stacks.append(stacks)
        launch = _Launch(
            self.loaded.address(self.kernel.name), ctypes.addressof(pointers), self._grid,
            self._block, self._shared_bytes, ctypes.addressof(ranges), len(operands),
            stacks.address, STACK_BYTES, MOST_THREADS, ctypes.addressof(shadow), len(shadow),
            self._seed, self.kernel.is_cooperative)
        launch.kept = pointers, ranges, shadow
        return launch


def check_sizes(kernel: CudaKernel, grid: Dim3, block: Dim3, shared_bytes: int) -> None:
    """Raise `KernelFault` for a launch that a GPU refuses."""
    threads = block[0] * block[1] * block[2]
    shared = shared_bytes + kernel.static_shared
    limits = [("grid", grid, MOST_GRID), ("block", block, MOST_BLOCK)]
    wrong = [f"its {name} is {given}, and from (1, 1, 1) to {most} are possible"
             for name, given, most in limits
             if any(not 1 <= n <= m for n, m in zip(given, most, strict=True))]
    most_threads = min(kernel.max_threads, MOST_THREADS)
    if threads > most_threads:
        wrong.append(f"a block has {threads} threads, and its launch bounds allow {most_threads}")
    if shared > MOST_SHARED:
        wrong.append(f"a block uses {shared} bytes of shared memory, and {MOST_SHARED} are there")
    if wrong:
        raise KernelFault(f"kernel {kernel.name} cannot be launched: {'; '.join(wrong)}")


def _shadow(loaded: EmulatedModule, shared_bytes: int) -> Any:
    """The module's shadow, which is large enough; it is zero at first."""
    needed = loaded.shadow_bytes(shared_bytes)
    if loaded.shadow is None or len(loaded.shadow) < needed:
        loaded.shadow = (ctypes.c_char * max(needed, 1))()
    return loaded.shadow


class _Stacks:
    """The stacks of a launch: memory that is there when it is first touched, and that a forked
    child has for itself."""

    def __init__(self) -> None:
        memory = mmap.mmap(-1, _BELOW + (MOST_THREADS + 1) * STACK_BYTES,
                           flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._first = ctypes.c_char.from_buffer(memory)  # which keeps the memory
        self.address = ctypes.addressof(self._first) + _BELOW


_spare: list[_Stacks] = []  # of launches that are over
