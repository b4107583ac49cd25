"""Operands of the structured IR: registers, literals, variables, memory, and views of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass
from fusec.ir.sizes.dims import Dim, Size, is_static

I64, BOOL = np.dtype(np.int64), np.dtype(np.bool_)
Origin = Literal["operand", "target", "temp", "zeros", "parameter", "alias"]


@dataclass(eq=False, slots=True)
class Register:
    """A number that one statement defines, before others read it."""

    number: int
    dtype: np.dtype

    def __repr__(self) -> str:
        return f"r{self.number}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is part of the code."""

    value: Any
    dtype: np.dtype

    def __repr__(self) -> str:
        return str(self.value)


@dataclass(eq=False, slots=True)
class Variable:
    """A number that statements set and get: carried by a loop, or a branch's result."""

    number: int
    dtype: np.dtype

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(eq=False, slots=True)
class Memory:
    """The memory of an array: ``nbytes`` from an address, which `Exchange` and `Point` change.

    ``origin``: operand or result number ``position`` of the program, memory that lives as long as
    the call (``temp``, or all 0: ``zeros``), a parameter of a function, or an ``alias``, whose
    address is another's.  ``left``: the number of the result that an early exit leaves there; -1:
    none.  ``nbytes`` of an operand are those of its elements, which may lie apart; -1: unknown.
    """

    number: int
    nbytes: Size
    dtype: np.dtype
    origin: Origin
    position: int = 0
    left: int = -1

    def __repr__(self) -> str:
        return f"m{self.number}"


Operand = Register | Constant
Strides = tuple[Any, ...]  # in bytes: an int, or the register that holds a run-time stride
ZERO = Constant(0, I64)


def is_zero(operand: Operand) -> bool:
    """Whether it is the integer 0 of the code."""
    return isinstance(operand, Constant) and operand.dtype == I64 and operand.value == 0


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


@dataclass(frozen=True)
class View:
    """An array as a view of memory, with byte strides.

    Its first element lies at ``offset`` bytes plus ``element`` elements.
    """

    memory: Memory
    shape: tuple[int, ...]
    strides: Strides
    dtype: np.dtype
    offset: Operand = ZERO
    element: Operand = ZERO

    @property
    def repeats(self) -> bool:
        """Whether several elements have the same address, as after a broadcast."""
        return any(s == 0 and n != 1 for s, n in zip(self.strides, self.shape, strict=True))

    @property
    def is_dense(self) -> bool:
        """Whether it lies in C order, without gaps."""
        return is_dense(self.shape, self.strides, self.dtype.itemsize)

    @property
    def is_whole(self) -> bool:
        """Whether it covers its memory, in C order."""
        if not is_static(self.shape):
            return False
        size = math.prod(self.shape) * self.dtype.itemsize
        return is_zero(self.offset) and is_zero(self.element) and size == self.memory.nbytes and (
            self.strides == contiguous(self.shape, self.dtype.itemsize))


Location = Operand | View
