"""Launches on the emulated device, and what is wrong with those that fail."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Sequence
from typing import NamedTuple

from fusec import locks
from fusec.codegen.cuda.module import CudaKernel
from fusec.errors import FusecError

from .loading import LoadedModule

Dim3 = tuple[int, int, int]
STACK_BYTES = 1 << 16
MOST_THREADS = 1024
MOST_BLOCK: Dim3 = (1024, 1024, 64)
MOST_GRID: Dim3 = ((1 << 31) - 1, 65_535, 65_535)
MOST_SHARED = 232_448  # bytes of a block, on sm_90; static and dynamic together
_EPOCHS = 1 << 31  # then the shadow is made anew
_running = locks.Lock()  # a module's kernels have one state


class KernelFault(FusecError, RuntimeError):
    """A kernel has done what it must not; the message says which, where and what."""


class Operand(NamedTuple):
    """Device memory that a kernel may use: its addresses, and which argument it is; none where both
    addresses are the argument itself."""

    start: int
    end: int
    argument: int
    is_written: bool


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_size_t), ("end", ctypes.c_size_t),
                ("is_written", ctypes.c_uint32), ("unused", ctypes.c_uint32))


class _Launch(ctypes.Structure):
    """`Launch` of cuda_host.cpp."""

    _fields_ = (
        ("kernel", ctypes.c_void_p), ("args", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3), ("shared_bytes", ctypes.c_uint64),
        ("ranges", ctypes.c_void_p), ("range_count", ctypes.c_uint64),
        ("stacks", ctypes.c_void_p), ("stack_bytes", ctypes.c_uint64),
        ("stack_count", ctypes.c_uint64), ("shadow", ctypes.c_void_p),
        ("shadow_bytes", ctypes.c_uint64), ("epoch", ctypes.c_uint64), ("seed", ctypes.c_uint64))


class _Report(ctypes.Structure):
    """`Report` of cuda_host.cpp."""

    _fields_ = (
        ("kind", ctypes.c_uint32), ("line", ctypes.c_uint32), ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3), ("other", ctypes.c_uint32 * 3),
        ("address", ctypes.c_uint64), ("size", ctypes.c_uint64), ("is_write", ctypes.c_uint32),
        ("is_shared", ctypes.c_uint32), ("code", ctypes.c_uint64),
        ("other_line", ctypes.c_uint32), ("other_has_left", ctypes.c_uint32))


def run(
    loaded: LoadedModule, kernel: CudaKernel, grid: Dim3, block: Dim3, shared_bytes: int,
    words: Sequence[ctypes._SimpleCData], operands: Sequence[Operand], seed: int,
) -> None:
    """Run every thread of every block.  ``words`` are the arguments, ``operands`` the device memory
    that they point to; with a ``seed`` other than 0 blocks and threads run in an order of its own.

    Raises `KernelFault`.
    """
    check_sizes(kernel, grid, block, shared_bytes)
    pointers = (ctypes.c_void_p * max(len(words), 1))(*map(ctypes.addressof, words))
    ranges = (_Range * max(len(operands), 1))(*(
        _Range(o.start, o.end, o.is_written, 0) for o in operands))
    with _running:
        shadow = _shadow(loaded, shared_bytes)
        launch = _Launch(
            loaded.address(kernel.name), ctypes.addressof(pointers), grid, block, shared_bytes,
            ctypes.addressof(ranges), len(operands), _stacks(), STACK_BYTES, MOST_THREADS,
            shadow, len(loaded.shadow), loaded.epoch, seed)
        found = loaded.run(ctypes.addressof(launch))
        loaded.epoch = launch.epoch
        if found:
            raise _Fault(loaded, kernel, operands, _Report.from_address(found)).error()


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


def _shadow(loaded: LoadedModule, shared_bytes: int) -> int:
    """The address of the module's shadow, which is large enough and not used up."""
    needed = loaded.shadow_bytes(shared_bytes)
    if loaded.shadow is None or len(loaded.shadow) < needed or loaded.epoch >= _EPOCHS:
        loaded.shadow, loaded.epoch = (ctypes.c_char * max(needed, 1))(), 1
    return ctypes.addressof(loaded.shadow)


@functools.cache
def _stacks() -> int:
    """The address of the threads' stacks: memory that is there when it is first touched."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, MOST_THREADS * STACK_BYTES + page)
    _kept.append(memory)
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


_kept: list[mmap.mmap] = []
_KINDS = ("", "out of bounds", "read only", "misaligned", "race", "diverged", "undefined",
          "trapped", "too large", "bad shuffle")


class _Fault:
    """A report in words."""

    def __init__(
        self, loaded: LoadedModule, kernel: CudaKernel, operands: Sequence[Operand],
        report: _Report,
    ) -> None:
        self.loaded, self.kernel, self.operands = loaded, kernel, operands
        self.report = report
        self.line = report.line or loaded.line_at(report.code)

    def error(self) -> KernelFault:
        titles = {
            "out of bounds": f"{self._verb} outside of {self._memory}",
            "read only": "writes to memory that it says it only reads",
            "misaligned": "accesses memory at an address that is not aligned",
            "race": "has a race in shared memory",
            "diverged": "has a barrier that not all threads reach",
            "undefined": "computes what C++ leaves undefined (an overflow, a shift, a quotient or "
                         "a conversion)",
            "trapped": "has stopped itself (__trap)",
            "too large": "uses more shared memory than it was launched with",
            "bad shuffle": "calls a function of its warp with a mask without the calling thread, "
                           "or with a wrong width",
        }
        kind = _KINDS[self.report.kind]
        values = [*self._values(kind), *self._places()]
        return KernelFault(f"kernel {self.kernel.name} {titles[kind]}", values=values)

    @property
    def _verb(self) -> str:
        return "writes" if self.report.is_write else "reads"

    @property
    def _memory(self) -> str:
        return "its shared memory" if self.report.is_shared else "its buffers"

    def _values(self, kind: str) -> list[tuple[str, str]]:
        report = self.report
        if kind in ("out of bounds", "read only"):
            return [("access", f"{report.size} bytes{self._distance()}")]
        if kind == "misaligned":
            return [("access", f"{report.size} bytes at {hex(report.address)}{self._distance()}")]
        if kind == "race":
            access = f"{self._verb} {report.size} bytes that the other thread has used"
            return [("access", f"{access} since the last barrier"),
                    ("other", f"thread {_dims(report.other)}")]
        if kind == "diverged":
            where = "has left the kernel" if report.other_has_left else (
                f"waits at line {report.other_line}{self._text(report.other_line)}")
            return [("other", f"thread {_dims(report.other)} {where}")]
        return []

    def _distance(self) -> str:
        """Where the access is, from the nearest buffer."""
        if self.report.is_shared or not self.operands:
            return ""
        at = self.report.address
        near = min(self.operands, key=lambda o: max(o.start - at, at - o.end, 0))
        if near.start == near.end:
            return (f", {at - near.start:+} bytes from argument {near.argument}, which points to "
                    f"no memory of the device: host memory, or freed")
        return (f", {at - near.start:+} bytes from the start of argument {near.argument}, "
                f"which has {near.end - near.start}")

    def _places(self) -> list[tuple[str, str]]:
        report = self.report
        places = [("thread", f"{_dims(report.thread)} of block {_dims(report.block)}")]
        if self.line:
            places.append(("line", f"{self.line}{self._text(self.line)}"))
        return places

    def _text(self, line: int) -> str:
        lines = self.loaded.module.source.splitlines()
        return f": {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""


def _dims(three: Sequence[int]) -> str:
    return f"({', '.join(map(str, three))})"
