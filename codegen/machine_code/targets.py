"""Machines that code is made for: this one, or one that is named, for libraries that go elsewhere.

The levels of x86-64 are those of its psABI (section 3.1.1): v3 has AVX2, FMA and F16C, v4 AVX-512.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from fusec.core.records import dataclass


@dataclass(frozen=True)
class CpuTarget:
    """A kind of CPU: ``features`` are those that generated code asks for, ``cpu`` is LLVM's name,
    ``machine`` that of the instruction set, ``leaves`` the bits of CPUID that it needs, as
    (leaf, register, mask); registers are numbered eax, ebx, ecx, edx."""

    name: str
    machine: str
    cpu: str
    features: frozenset[str]
    leaves: tuple[tuple[int, int, int], ...] = ()

    @property
    def triple(self) -> str:
        return f"{self.machine}-unknown-linux-gnu"


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


# CPUID: SSE3, SSSE3, CX16, SSE4.1, SSE4.2, POPCNT in ecx of leaf 1; LAHF in ecx of 0x80000001.
_V2 = ((1, 2, _bits(0, 9, 13, 19, 20, 23)), (0x80000001, 2, _bits(0)))
# FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2 in ebx of leaf 7; LZCNT.
_V3 = (*_V2, (1, 2, _bits(12, 22, 27, 28, 29)), (7, 1, _bits(3, 5, 8)), (0x80000001, 2, _bits(5)))
# AVX512F, DQ, CD, BW, VL.
_V4 = (*_V3, (7, 1, _bits(16, 17, 28, 30, 31)))
TARGETS = {
    "v2": CpuTarget("v2", "x86_64", "x86-64-v2", frozenset(), _V2),
    "v3": CpuTarget("v3", "x86_64", "x86-64-v3", frozenset({"avx2", "f16c", "fma"}), _V3),
    "v4": CpuTarget(
        "v4", "x86_64", "x86-64-v4", frozenset({"avx2", "f16c", "fma", "avx512f"}), _V4),
    "aarch64": CpuTarget("aarch64", "aarch64", "generic", frozenset({"f16c", "fma"})),
}
BASELINES = {"x86_64": CpuTarget("x86_64", "x86_64", "x86-64", frozenset()),
             "aarch64": TARGETS["aarch64"]}
_current: ContextVar[CpuTarget | None] = ContextVar("target", default=None)


def current() -> CpuTarget | None:
    """The target that code is made for; None: this machine."""
    return _current.get()


@contextlib.contextmanager
def using(target: CpuTarget) -> Iterator[None]:
    """Code that is made inside of the block is for this target."""
    token = _current.set(target)
    try:
        yield
    finally:
        _current.reset(token)


__all__ = ["BASELINES", "TARGETS", "CpuTarget", "current", "using"]
