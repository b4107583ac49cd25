"""Arrays of a native loop: memory, and views of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.cpu.emitter import Operand
from fusec.ir.dims import Dim, is_static
from fusec.records import dataclass

Strides = tuple[Any, ...]  # in bytes: an int, or the register that holds a run-time stride


def contiguous(shape: Sequence[int], itemsize: int) -> Strides:
    """Strides in C order."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        if axis:
            step *= max(shape[axis], 1)
    return tuple(strides)


def is_dense(shape: Sequence[int], strides: Strides, itemsize: int) -> bool:
    """Whether the strides are those of C order, run-time sizes included."""
    step: int | None = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride != step:
            return False
        step = None if isinstance(size, Dim) or step is None else step * max(size, 1)
    return True


@dataclass(eq=False)
class Token:
    """An array's memory.  ``slot`` holds its address: a loop may swap those of two tokens."""

    slot: str
    nbytes: int
    dtype: np.dtype


@dataclass(frozen=True)
class ArrayRef:
    """An array as a view of a token's memory, with byte strides.

    Its first element lies at ``offset`` bytes plus ``element`` elements (SSA names or literals).
    """

    token: Token
    shape: tuple[int, ...]
    strides: Strides
    dtype: np.dtype
    offset: str = "0"
    element: str = "0"

    @property
    def repeats(self) -> bool:
        """Whether several elements have the same address, as after a broadcast."""
        return any(s == 0 and n != 1 for s, n in zip(self.strides, self.shape, strict=True))

    @property
    def is_whole(self) -> bool:
        """Whether it covers the token's memory, in C order."""
        if not is_static(self.shape):
            return False
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        return self.offset == "0" and self.element == "0" and size == self.token.nbytes and (
            self.strides == contiguous(self.shape, self.dtype.itemsize))


Location = Operand | ArrayRef
