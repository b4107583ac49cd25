"""CUDA C++ text: lines at their depth, fresh names, and the types of values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fusec.codegen.vecmath.formats import F32, F64
from fusec.core.records import dataclass

from .math_builder import float_literal

BOOL, I64 = np.dtype(np.bool_), np.dtype(np.int64)
HALF = np.dtype(np.float16)


def type_name(dtype: np.dtype) -> str:
    """The C++ type of a value: ``bool``, ``i32``, ``f64``."""
    return "bool" if dtype == BOOL else f"{dtype.kind}{8 * dtype.itemsize}"


def memory_type(dtype: np.dtype) -> str:
    """The C++ type of an element in memory: booleans are bytes there."""
    return "u8" if dtype == BOOL else type_name(dtype)


def unsigned_type(dtype: np.dtype) -> str:
    """The unsigned type of the same width, for arithmetic that wraps."""
    return f"u{8 * dtype.itemsize}"


@dataclass(frozen=True, slots=True)
class CudaValue:
    """A value in the text: a name or a literal."""

    text: str
    dtype: np.dtype

    def __str__(self) -> str:
        return self.text


_TYPES = {f"{kind}{bits}" for kind in "iuf" for bits in (8, 16, 32, 64, 128)}


class CudaEmitter:
    """The body of a kernel as it grows; ``math`` are the math functions that it calls,
    ``functions`` the user's, by symbol.  ``notes``: which lines are of which expression (first
    line, the one after the last, expression); None where nobody asks."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.math: dict[tuple[str, np.dtype], None] = {}
        self.functions: dict[str, None] = {}
        self.notes: list[tuple[int, int, Any]] | None = None
        self._depth, self._count = 1, 0

    def fresh(self, prefix: str = "t") -> str:
        """A name that nothing has; a counter ``i8`` would hide the type."""
        self._count += 1
        name = f"{prefix}{self._count}"
        return self.fresh(prefix) if name in _TYPES else name

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    def note(self, start: int, source: Any) -> None:
        """The lines from ``start`` on are of this expression."""
        if self.notes is not None:
            self.notes.append((start, len(self.lines), source))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """The lines inside are in braces after this."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def named(self, kind: str, text: str, prefix: str = "t") -> str:
        """A fresh constant of a C++ type."""
        name = self.fresh(prefix)
        self.line(f"const {kind} {name} = {text};")
        return name

    def value(self, dtype: np.dtype, text: str) -> CudaValue:
        """A fresh constant of a dtype."""
        return CudaValue(self.named(type_name(dtype), text), dtype)

    def const(self, dtype: np.dtype, value: Any) -> CudaValue:
        return CudaValue(literal(dtype, value), dtype)


def literal(dtype: np.dtype, value: Any) -> str:
    """A constant, exactly."""
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype == HALF:
        return f"half_of_bits({int(np.float16(value).view(np.uint16))})"
    if dtype.kind == "f":
        return float_literal(F64 if dtype.itemsize == 8 else F32, float(value))
    bits = int(value) % (1 << (8 * dtype.itemsize))
    return f"{type_name(dtype)}({bits:#x}{'ull' if dtype.itemsize == 8 else 'u'})"
