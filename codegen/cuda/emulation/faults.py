"""Faults of a launch, in words."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from fusec.codegen.cuda.module import CudaKernel
from fusec.errors import FusecError

from .loading import EmulatedModule


class KernelFault(FusecError, RuntimeError):
    """A kernel's illegal access or launch; the message names the kernel and the place."""


class MemoryRange(NamedTuple):
    """Device memory that a kernel may use: its addresses, and which argument it is; none where both
    addresses are the argument itself."""

    start: int
    end: int
    argument: int
    is_written: bool


class FaultReport(ctypes.Structure):
    """`FaultReport` of cuda_host.cpp."""

    _fields_ = (
        ("kind", ctypes.c_uint32), ("line", ctypes.c_uint32), ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3), ("other", ctypes.c_uint32 * 3),
        ("address", ctypes.c_uint64), ("size", ctypes.c_uint64), ("is_write", ctypes.c_uint32),
        ("is_shared", ctypes.c_uint32), ("code", ctypes.c_uint64),
        ("other_line", ctypes.c_uint32), ("other_has_left", ctypes.c_uint32))


_KINDS = ("", "out of bounds", "read only", "misaligned", "race", "diverged", "undefined",
          "trapped", "too large", "bad shuffle", "stack full")


class Fault:
    """A report in words."""

    def __init__(
        self, loaded: EmulatedModule, kernel: CudaKernel, operands: Sequence[MemoryRange],
        report: FaultReport,
    ) -> None:
        self.loaded, self.kernel, self.operands = loaded, kernel, operands
        self.report = report
        self.lines = (report.line,) if report.line else loaded.lines_at(report.code)

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
            "stack full": "has variables in a thread that do not fit on its stack",
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
        if self.lines:
            places.append(("line", f"{self.lines[0]}{self._text(self.lines[0])}"))
        if len(self.lines) > 1:
            places.append(("called at", f"{self.lines[-1]}{self._text(self.lines[-1])}"))
        return places

    def _text(self, line: int) -> str:
        lines = self.loaded.module.source.splitlines()
        return f": {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""


def _dims(three: Sequence[int]) -> str:
    return f"({', '.join(map(str, three))})"
