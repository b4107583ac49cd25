"""Memory of results: ordinary arrays that own their data, with big blocks recycled.

A fresh 64 MB array costs more in page faults than most kernels cost in arithmetic.  Arrays of at
least 64 KiB made here take a block that an earlier array gave back, when there is one.  They are
plain ``numpy.ndarray`` objects (``owndata``, no ``base``) and only they use fusec's memory handler:
NumPy's current handler is never switched.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import os
from collections.abc import Callable, Sequence

import numpy as np

from fusec import config
from fusec.codegen.machine_code import llvm
from fusec.core import locks
from fusec.core.records import dataclass
from fusec.runtime.native import NativeUnavailableError, allocator, blocks, numpy_api

HANDLER_NAME = "fusec"


@dataclass(frozen=True)
class MemoryStats:
    """Blocks of the allocator, and counts.  Bytes are those of whole blocks (sizes rounded up)."""

    cap_bytes: int
    retained_bytes: int
    retained_blocks: int
    live_bytes: int
    hits: int
    misses: int
    evictions: int
    contended: int


@dataclass(frozen=True)
class Status:
    """Whether a native part is in use, and if not, why."""

    available: bool
    reason: str


class _Allocator(ctypes.Structure):
    _fields_ = (("context", ctypes.c_void_p), ("malloc", ctypes.c_void_p),
                ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
                ("free", ctypes.c_void_p))


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``, version 1."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8),
                ("allocator", _Allocator))


class _Native:
    """The compiled allocator and its handler, made once and never given back."""

    def __init__(self) -> None:
        code = allocator.code()
        size, pointer = ctypes.c_int64, ctypes.c_void_p
        self.addresses = {name: code.address(name) for name in _EXPORTS}
        llvm.add_symbols(self.addresses)
        self.handler = self._make_handler(code)
        setup = ctypes.CFUNCTYPE(None, pointer, ctypes.py_object, size)
        setup(code.address("fusec_memory_setup"))(
            id(np.ndarray), self.handler, config.memory_cap_bytes)
        self.set_cap = ctypes.CFUNCTYPE(None, size)(code.address("fusec_memory_cap"))
        self.trim = ctypes.CFUNCTYPE(None, size)(code.address("fusec_memory_trim"))
        self.read_stats = ctypes.CFUNCTYPE(None, pointer)(code.address("fusec_memory_stats"))
        self.unlock = ctypes.CFUNCTYPE(None)(code.address("fusec_memory_unlock"))
        self.new_array: Callable[..., np.ndarray] = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.py_object, ctypes.c_int32, pointer, pointer, size)(
                code.address("fusec_new_array"))

    @staticmethod
    def _make_handler(code: llvm.NativeCode) -> object:
        """The capsule that NumPy keeps in each of our arrays; it outlives Python's modules."""
        functions = [code.address(f"handler_{name}")
                     for name in ("malloc", "calloc", "realloc", "free")]
        handler = _Handler(HANDLER_NAME.encode(), 1, _Allocator(None, *functions))
        name = ctypes.create_string_buffer(b"mem_handler")
        make = numpy_api.python_function(
            "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        capsule = make(ctypes.addressof(handler), ctypes.addressof(name), None)
        for immortal in (handler, name, capsule):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))
        return capsule


_EXPORTS = ("fusec_alloc", "fusec_free", "fusec_new_array")
_making = locks.Lock()
_native: _Native | None = None
_status: Status | None = None


def _check(native: _Native) -> None:
    """Make, drop and remake an array; ``NativeUnavailableError`` when NumPy does not play along."""
    shape, strides = (ctypes.c_int64 * 2)(96, 128), (ctypes.c_int64 * 2)(1024, 8)
    dims, steps = ctypes.addressof(shape), ctypes.addressof(strides)
    nbytes = 96 * 1024
    first = native.new_array(np.dtype(np.float64), 2, dims, steps, nbytes)
    address = first.ctypes.data
    first[...] = 1.0
    facts = {
        "shape": first.shape == (96, 128) and first.strides == (1024, 8),
        "owndata": bool(first.flags.owndata) and first.base is None,
        "handler": numpy_api.handler_name(first) == HANDLER_NAME,
        "alignment": address % 64 == 0 and bool(first.flags.carray),
    }
    del first
    again = native.new_array(np.dtype(np.float64), 2, dims, steps, nbytes)
    facts["reuse"] = again.ctypes.data == address
    wrong = [name for name, good in facts.items() if not good]
    if wrong:
        raise NativeUnavailableError(
            f"NumPy {np.__version__} does not accept fusec's arrays ({', '.join(wrong)} differ)")


def _start() -> _Native | None:
    """The native allocator, or None (``allocator_status`` says why)."""
    global _native, _status
    if _status is None:
        with _making:
            if _status is None:
                _native, _status = _make()
    return _native


def _make() -> tuple[_Native | None, Status]:
    try:
        native = _Native()
        _check(native)
    except NativeUnavailableError as error:
        return None, Status(False, f"results use NumPy's own allocator: {error}")
    return native, Status(True, "big results reuse memory through fusec's NumPy memory handler")


def allocator_status() -> Status:
    """Whether results of 64 KiB and more are recycled here, and if not, why."""
    _start()
    assert _status is not None
    return _status


def symbol_addresses() -> dict[str, int]:
    """Addresses for native callers; raises ``NativeUnavailableError`` when there are none.

    ``ptr fusec_alloc(i64 bytes)`` and ``void fusec_free(ptr)`` need no GIL;
    ``ptr fusec_new_array(ptr descr, i32 nd, ptr dims, ptr strides, i64 nbytes)`` returns a new
    reference, or null with an exception set.  Modules compiled later may ``declare`` them.
    """
    native = _start()
    if native is None:
        raise NativeUnavailableError(allocator_status().reason)
    return dict(native.addresses)


# ---- arrays ----------------------------------------------------------------------------------

def axis_order(order: str | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes from the slowest to the fastest varying, for ``"C"``, ``"F"`` or such a permutation."""
    if order == "C":
        return tuple(range(ndim))
    if order == "F":
        return tuple(reversed(range(ndim)))
    if isinstance(order, str) or sorted(order) != list(range(ndim)):
        raise ValueError(f"order={order!r} for {ndim} dimensions: give 'C', 'F' or a permutation "
                         f"of {tuple(range(ndim))}, slowest axis first")
    return tuple(order)


def packed_strides(shape: Sequence[int], itemsize: int, order: str | Sequence[int] = "C"
                   ) -> tuple[int, ...]:
    """Byte strides of a gap-free array whose axes vary in the given order, as NumPy sets them."""
    strides = [0] * len(shape)
    step = itemsize
    for axis in reversed(axis_order(order, len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def empty(shape: tuple[int, ...], dtype: np.dtype | type | str = np.float64,
          order: str | Sequence[int] = "C") -> np.ndarray:
    """An uninitialised array that owns its data, like ``np.empty``, from recycled memory when big.

    ``order`` is ``"C"``, ``"F"`` or the axes from the slowest to the fastest varying.  Dtypes that
    hold Python objects always come from NumPy.  Raises as ``np.empty`` does, and ``ValueError``
    for another order.
    """
    dtype = np.dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    native = _start() if nbytes >= blocks.MIN_BLOCK and not dtype.hasobject else None
    if native is None or min(shape, default=1) < 0:
        return _numpy_empty(shape, dtype, order)
    words = _layout(shape, dtype.itemsize, order if isinstance(order, str) else tuple(order))
    at, ndim = ctypes.addressof(words), len(shape)
    return native.new_array(dtype, ndim, at, at + 8 * ndim, nbytes)


@functools.lru_cache(maxsize=512)
def _layout(shape: tuple[int, ...], itemsize: int, order: str | tuple[int, ...]
            ) -> ctypes.Array[ctypes.c_int64]:
    """The shape and the strides as machine words, one after the other."""
    words = (*shape, *packed_strides(shape, itemsize, order))
    return (ctypes.c_int64 * len(words))(*words)


def _numpy_empty(shape: tuple[int, ...], dtype: np.dtype, order: str | Sequence[int]
                 ) -> np.ndarray:
    """``np.empty`` for any order of axes; without strides of its own NumPy sets C or F ones."""
    if isinstance(order, str):
        axis_order(order, len(shape))
        return np.empty(shape, dtype, order)  # type: ignore[call-overload]
    return np.ndarray(shape, dtype, strides=packed_strides(shape, dtype.itemsize, order))


# ---- what is kept ----------------------------------------------------------------------------

def memory_stats() -> MemoryStats:
    """The allocator's counters; all zero when it is not in use."""
    native = _start()
    words = (ctypes.c_int64 * len(allocator.STATS))()
    if native is not None:
        native.read_stats(ctypes.addressof(words))
    return MemoryStats(**dict(zip(allocator.STATS, words, strict=True)))


def live_bytes() -> int:
    """Bytes of the blocks that arrays use now: as in `memory_stats`, without its object."""
    if _native is None:
        return 0
    words = (ctypes.c_int64 * len(allocator.STATS))()
    _native.read_stats(ctypes.addressof(words))
    return words[_LIVE]


_LIVE = allocator.STATS.index("live_bytes")


def set_memory_cap(nbytes: int) -> None:
    """Keep at most this many bytes of free blocks; 0 keeps none.  ``ValueError`` if negative."""
    if nbytes < 0:
        raise ValueError(f"set_memory_cap({nbytes}): give a number of bytes >= 0")
    native = _start()
    if native is not None:
        native.set_cap(nbytes)


def release_memory() -> None:
    """Give every kept block back to the C library."""
    if _native is not None:
        _native.trim(0)


def _after_fork() -> None:
    if _native is not None:
        _native.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(release_memory)


def _cap_changed(nbytes: int) -> None:
    if _status is not None:
        set_memory_cap(nbytes)


config.on_change("memory_cap_bytes", _cap_changed)
