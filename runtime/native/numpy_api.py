"""Where NumPy keeps things: its C-API table and the fields of an array, checked on this NumPy.

The slots and the field order are NumPy's stable ABI (``__multiarray_api.h``, ``ndarraytypes.h``).
``array_layout`` still compares every field with Python's view before native code may rely on it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import numpy as np
from numpy._core import multiarray

from fusec.core.records import dataclass
from fusec.runtime.native import NativeUnavailableError, address_of

_SLOTS = {
    "PyArray_Scalar": 60, "PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282,
}
_DEFAULT_HANDLER_SLOT = 306
_umath: Any = importlib.import_module("numpy._core._multiarray_umath")   # not in NumPy's stubs
WORD = 8


@functools.cache
def _table() -> ctypes.Array[ctypes.c_void_p]:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = get(_umath._ARRAY_API, None)
    return (ctypes.c_void_p * (_DEFAULT_HANDLER_SLOT + 1)).from_address(address)


def addresses(*names: str) -> dict[str, int]:
    """Addresses of functions of NumPy's C API."""
    return {name: _table()[_SLOTS[name]] or 0 for name in names}


def handler_name(array: np.ndarray) -> str | None:
    """The name of the memory handler that owns the array's data; None when nobody owns it."""
    return multiarray.get_handler_name(array)


@dataclass(frozen=True)
class ArrayLayout:
    """Byte offsets of the fields of an ``ndarray`` object."""

    data: int
    nd: int
    dims: int
    strides: int
    base: int
    descr: int
    flags: int
    mem_handler: int


def word(address: int) -> int:
    """The machine word stored at an address."""
    return ctypes.c_uint64.from_address(address).value


def _words(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address))


def _expected_layout() -> ArrayLayout:
    """The fields follow the object header, whose size free-threaded builds change."""
    head = object.__basicsize__
    return ArrayLayout(data=head, nd=head + 8, dims=head + 16, strides=head + 24, base=head + 32,
                       descr=head + 40, flags=head + 48, mem_handler=head + 72)


def _mismatches(layout: ArrayLayout, array: np.ndarray, handler: int) -> list[str]:
    """The fields of ``array`` that differ from Python's."""
    at = id(array)
    base = 0 if array.base is None else id(array.base)
    checks = {
        "data": word(at + layout.data) == array.ctypes.data,
        "nd": ctypes.c_int32.from_address(at + layout.nd).value == array.ndim,
        "base": word(at + layout.base) == base,
        "descr": word(at + layout.descr) == id(array.dtype),
        "flags": ctypes.c_int32.from_address(at + layout.flags).value == array.flags.num,
        "mem_handler": word(at + layout.mem_handler) == handler,
    }
    wrong = [name for name, good in checks.items() if not good]
    if "nd" not in wrong and array.ndim:
        dims, strides = (word(at + place) for place in (layout.dims, layout.strides))
        wrong += [] if _words(dims, array.ndim) == array.shape else ["dims"]
        wrong += [] if _words(strides, array.ndim) == array.strides else ["strides"]
    return wrong


@functools.cache
def array_layout() -> ArrayLayout:
    """The layout of arrays, verified; ``NativeUnavailableError`` names the fields that differ."""
    layout = _expected_layout()
    if np.ndarray.__basicsize__ < layout.mem_handler + WORD:
        raise NativeUnavailableError(
            f"arrays of NumPy {np.__version__} are {np.ndarray.__basicsize__} bytes, too small to "
            "have a memory handler")
    default_handler = word(_table()[_DEFAULT_HANDLER_SLOT] or 0)
    owner = np.empty((3, 5, 2), np.float32)
    frozen = np.empty((4, 6), np.int16)
    frozen.flags.writeable = False
    samples: list[tuple[np.ndarray, int]] = [
        (owner, default_handler), (frozen, default_handler),
        (owner[::-1, 1:, 0], 0), (np.empty((), np.complex128), default_handler), (owner.T, 0)]
    wrong = sorted({name for array, handler in samples
                    for name in _mismatches(layout, array, handler)})
    if wrong:
        raise NativeUnavailableError(
            f"arrays of NumPy {np.__version__} keep {', '.join(wrong)} in another place than fusec "
            "knows")
    return layout


def python_function(name: str, restype: object, *argtypes: object) -> ctypes._CFuncPtr:  # type: ignore[name-defined]
    """A function of Python's C API as a private prototype (ctypes' shared one stays untouched)."""
    return ctypes.PYFUNCTYPE(restype, *argtypes)(  # type: ignore[arg-type]
        address_of(getattr(ctypes.pythonapi, name)))
