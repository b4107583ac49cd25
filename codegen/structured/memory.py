"""Operands of the structured IR: registers, literals, variables, memory, and views of memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.bindings import Bindings, attrs_evaluator, resolve
from fusec.ir.sizes.dims import Dim, Size, is_static

I64, BOOL = np.dtype(np.int64), np.dtype(np.bool_)
Origin = Literal["operand", "target", "temp", "zeros", "parameter", "alias", "cell"]


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
    the call (``temp``, or all 0: ``zeros``), a parameter of a function, an ``alias``, whose address
    is another's, or a ``cell``, words of the host's that hold a number.  ``left``: the number of
    the result that an early exit leaves there; -1: none.  ``nbytes`` of an operand are those of its
    elements, which may lie apart; -1: unknown.
    """

    number: int
    nbytes: Size
    dtype: np.dtype
    origin: Origin
    position: int = 0
    left: int = -1

    @property
    def key(self) -> tuple[str, int]:
        """Which memory of a call it is: its origin, and its number among those of that origin."""
        return self.origin, self.position

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


@dataclass(frozen=True, eq=False)
class ShownAs:
    """``reference`` of an array, as NumPy has it, at attributes that may hold sizes; ``op``: its
    name."""

    reference: Callable[..., np.ndarray]
    attrs: Mapping[str, Any]
    op: str

    @lazy
    def _attrs_at(self) -> Callable[[Bindings], dict[str, Any]]:
        return attrs_evaluator(self.attrs)

    def __call__(self, array: np.ndarray, sizes: Bindings) -> np.ndarray:
        return self.reference(array, **self._attrs_at(sizes))


@dataclass(frozen=True, eq=False)
class ConstantView:
    """Views of a constant at sizes of arguments, for a library to read."""

    constant: Any
    views: tuple[ShownAs, ...]

    def at_sizes(self, sizes: Callable[[Any], Any]) -> Any:
        """What they show, for a function that substitutes sizes in plain data."""
        shown = sizes(self.constant)
        for view in self.views:
            shown = view.reference(shown, **{k: sizes(x) for k, x in view.attrs.items()})
        return shown


@dataclass(frozen=True)
class View:
    """An array as a view of memory, with byte strides.

    Its first element lies at ``offset`` bytes plus ``element`` elements.  In a plan that Python
    runs ``views`` may show a part of the memory, one after the other: then only library calls read
    it, and it has no strides.
    """

    memory: Memory
    shape: tuple[Size, ...]
    strides: Strides
    dtype: np.dtype
    offset: Operand = ZERO
    element: Operand = ZERO
    views: tuple[ShownAs, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """Of the memory."""
        return self.memory.key

    @property
    def is_cell(self) -> bool:
        """Whether it is a number in words of the host's."""
        return self.memory.origin == "cell"

    @property
    def is_static(self) -> bool:
        """Whether its sizes are known when it is planned."""
        return is_static(self.shape)

    def at_sizes(self, sizes: Bindings) -> View:
        """The view with its sizes evaluated."""
        return self if self.is_static else replace(
            self, shape=resolve(self.shape, sizes), strides=resolve(self.strides, sizes))

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
