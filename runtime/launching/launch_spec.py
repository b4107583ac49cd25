"""One call of a compiled function as plain data: see ``PlanSpec``."""

from __future__ import annotations

import numpy as np

from fusec.core.occupancy import Use
from fusec.core.records import dataclass
from fusec.runtime.native import records


@dataclass(frozen=True)
class WordStore:
    """Where a pointer or scalar goes: ``slot`` is the address of one 64-bit argument word.

    For arrays ``offset`` is added to the data pointer.  For raw scalars it is where in the value
    the word starts (8 for an imaginary part).  ``mode`` converts: ``RAW`` bits (smaller values
    zero-extended), ``F64_AS_F32``, ``INT_AS_F64``, ``INT_AS_F32``.
    """

    slot: int
    offset: int = 0
    mode: int = records.STORE_RAW


RAW, F64_AS_F32 = records.STORE_RAW, records.STORE_F64_AS_F32
INT_AS_F64, INT_AS_F32 = records.STORE_INT_AS_F64, records.STORE_INT_AS_F32


@dataclass(frozen=True)
class ArrayArg:
    """An array of exactly this type, dtype object, shape and strides (None: any stride, for dims
    of size 1), aligned and, when asked, writeable or read-only.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int | None, ...]
    stores: tuple[WordStore, ...] = ()
    writeable: bool = False
    read_only: bool = False
    type: type = np.ndarray


@dataclass(frozen=True)
class ScalarArg:
    """A Python float or complex, or a NumPy number or bool, of exactly this type."""

    type: type
    stores: tuple[WordStore, ...] = ()


@dataclass(frozen=True)
class IntArg:
    """A Python int (exactly) with ``low <= value <= high``; equal bounds make it a constant."""

    stores: tuple[WordStore, ...] = ()
    low: int = -(1 << 63)
    high: int = (1 << 63) - 1


@dataclass(frozen=True)
class BoolArg:
    """A Python bool; stored as 0 or 1."""

    stores: tuple[WordStore, ...] = ()


@dataclass(frozen=True)
class ObjectArg:
    """This very object (``is``)."""

    value: object


@dataclass(frozen=True)
class TypeArg:
    """Any object of exactly this type."""

    type: type


@dataclass(frozen=True)
class AddressArg:
    """The object at this address, which is not kept alive: the plan ends with it."""

    address: int


@dataclass(frozen=True)
class ArrayOut:
    """A new array of the given layout (gap-free in some order of axes); its address is stored."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    stores: tuple[WordStore, ...] = ()
    nbytes: int | None = None  # None: as the shape says


@dataclass(frozen=True)
class ScalarOut:
    """A NumPy scalar of ``kind`` (a dtype) or a Python ``float``, ``int``, ``bool``, ``complex``,
    read after the run from ``storage``, an address (8-byte aligned) that a kernel writes.
    """

    kind: np.dtype | type
    storage: int


@dataclass(frozen=True)
class ArgOut:
    """The argument of this index itself."""

    index: int


@dataclass(frozen=True)
class ObjectOut:
    """A constant object, such as None."""

    value: object


@dataclass(frozen=True)
class ViewOut:
    """A view of an array argument: its memory from ``offset`` bytes on, with this layout."""

    index: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True)
class Temp:
    """A block for an intermediate value, 64-byte aligned, gone after the call."""

    nbytes: int
    stores: tuple[WordStore, ...]


@dataclass(frozen=True)
class NativeStep:
    """One kernel: ``function(arguments, begin, end)`` over ``ntasks``; both are addresses."""

    function: int
    arguments: int
    ntasks: int
    grain: int = 1
    parallel: bool = False


@dataclass(frozen=True)
class Disjoint:
    """The memory of two array arguments must not overlap (by their extents).

    ``bounds``: these, as `byte_extent` gives them for each; None: as the arguments say.
    """

    first: int
    second: int
    bounds: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class SameMemory:
    """Two array arguments must start at the same address, the second so many bytes after the first.
    """

    first: int
    second: int
    offset: int = 0


@dataclass(frozen=True)
class OpenWord:
    """A word of memory, part of ``owner``, must hold this object's address."""

    owner: object
    offset: int
    expected: object


Arg = ArrayArg | ScalarArg | IntArg | BoolArg | ObjectArg | TypeArg | AddressArg
Out = ArrayOut | ScalarOut | ArgOut | ObjectOut | ViewOut


@dataclass(frozen=True)
class PlanSpec:
    """One call.  ``keep`` holds whatever owns the kernels, argument words and storages."""

    args: tuple[Arg, ...]
    outs: tuple[Out, ...]
    steps: tuple[NativeStep, ...]
    temps: tuple[Temp, ...] = ()
    relations: tuple[Disjoint | SameMemory, ...] = ()
    release_gil: bool = False
    as_tuple: bool = False
    words: tuple[OpenWord, ...] = ()
    holds: tuple[Use, ...] = ()          # the Variables that it uses; they are held while it runs
    status_slots: tuple[int, ...] = ()   # words that receive the address of the status word
    keep: tuple[object, ...] = ()
    name: str = "plan"
