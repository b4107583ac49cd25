"""Measures of a `Guard`: how the value at a call is compared with the traced one.

``Identity``: the same object; ``Bits``: a number or text of the same type and bits;
``LayoutMeasure``: an array or number that the same code can run on.  That of a container is in
`contents`.
"""

from __future__ import annotations

import array
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from fusec.ir.sizes.size_questions import Computed

from ..values.assigned_names import SMALL

DATA = (int, float, complex, bool, str, bytes, type(None), np.ndarray, np.generic)
CONTAINERS = (tuple, list, dict, set, frozenset, deque)
VIEWS = (ChainMap, MappingProxyType, UserDict, UserList)  # of containers
BUFFERS = (bytearray, array.array)
ATOMS = (int, float, complex, str, bytes, type(None), np.generic, type(Ellipsis))
_LONGEST_ROW = 64  # items of a tuple that is compared as one number is


class Measure(Protocol):
    """The condition on a place's value.  ``is_of_start``: measured when the trace begins, as the
    value is mutable."""

    @property
    def is_of_start(self) -> bool: ...

    def matches(self, value: Any) -> bool:
        """Whether a trace that saw the measured value may answer for this one."""

    def text(self) -> str:
        """The value, for messages."""


class Identity:
    """One object, weakly referenced where possible; of an array the layout too."""

    __slots__ = ("layout", "reference")

    is_of_start = False

    def __init__(self, value: Any) -> None:
        self.layout = layout_of(value) if type(value) is np.ndarray else None
        try:
            self.reference: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.reference = Kept(value)

    def matches(self, value: Any) -> bool:
        return value is not None and self.reference() is value and (
            self.layout is None or layout_of(value) == self.layout)

    def text(self) -> str:
        return short(self.reference())


class Kept:
    """A strong reference, for objects without weak ones."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


class Bits:
    """A number, text, set or buffer by type and bits: 1, True and 1.0 differ, -0.0 and 0.0."""

    __slots__ = ("bits", "kind", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.kind = value, type(value)
        self.bits = None if isinstance(value, ATOMS) else bits_of(value)

    @property
    def is_of_start(self) -> bool:
        return self.bits is not None

    def matches(self, value: Any) -> bool:
        if self.bits is None:
            return value is self.value or (
                type(value) is self.kind and bool(bits_of(value) == bits_of(self.value)))
        return type(value) is self.kind and bool(bits_of(value) == self.bits)

    def text(self) -> str:
        return short(self.value)


def is_row(value: Any) -> bool:
    """Whether it is a short tuple of numbers and text, which is immutable throughout."""
    return type(value) is tuple and len(value) <= _LONGEST_ROW and all(
        isinstance(x, ATOMS) for x in value)


def is_plain_object(value: Any) -> bool:
    """Whether it is compared by identity only."""
    return not isinstance(value, (*DATA, *CONTAINERS, *BUFFERS, *VIEWS, slice, range, partial))


def bits_of(value: Any) -> Any:
    """A key that is equal for values of one type only if no program can tell them apart."""
    if isinstance(value, (float, complex, np.generic, slice, range)):
        return repr(value)
    if isinstance(value, BUFFERS):
        return bytes(value)
    if isinstance(value, (set, frozenset)):
        return frozenset((type(item), item) for item in value)
    return value


class LayoutMeasure:
    """An array of one dtype, shape and strides, or a number of one type."""

    __slots__ = ("layout",)

    is_of_start = False

    def __init__(self, value: Any) -> None:
        self.layout = layout_of(value)

    def matches(self, value: Any) -> bool:
        return bool(layout_of(value) == self.layout)

    def text(self) -> str:
        first, *rest = self.layout
        if first is Computed:
            return "computed for the sizes of each call"
        if rest:
            text = f"{first}{list(rest[0])}"
        else:
            text = first.__name__ if isinstance(first, type) else str(first)
        return f"{text} (read at each call)"


def layout_of(value: Any) -> tuple[Any, ...]:
    """The layout as a tuple that is quickly compared, without texts."""
    if type(value) is np.ndarray:
        return (value.dtype, value.shape, value.strides, value.flags.writeable)
    if type(value) is int and not -SMALL < value < SMALL:
        return (value,)
    return (type(value),)


class _Any:
    """Anything: another guard compares it."""

    is_of_start = False

    def matches(self, value: Any) -> bool:
        return True

    def text(self) -> str:
        return "anything"


ANY = _Any()


def short(value: Any) -> str:
    """A value in a message."""
    if type(value) is np.ndarray:
        return f"this array ({value.dtype}{list(value.shape)})"
    if isinstance(value, (list, dict, deque)):
        return f"this {type(value).__name__} (what is in it is read at each call)"
    return repr(value)[:60]
