"""Arrays in a device's memory: NumPy's, over addresses that only kernels and copies may touch."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import InternalError

from ...backend import DeviceArrays
from .driver import Driver


class _Block:
    """Device memory as NumPy takes it over; it is freed when no array shows it any more."""

    def __init__(self, driver: Driver, nbytes: int, arriving: bool) -> None:
        address = driver.allocate(max(nbytes, 1), arriving)
        weakref.finalize(self, driver.free, address).atexit = False
        self.__array_interface__ = {
            "data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


class _Lying:
    """Bytes of the host's memory as NumPy takes them over."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__ = {
            "data": (address, True), "shape": (nbytes,), "typestr": "|u1", "version": 3}


class DriverArrays(DeviceArrays):
    """See `fusec.codegen.backend.DeviceArrays`.

    The device works asynchronously, so an array's contents are right only in `fetch`.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype, order: str | Sequence[int] = "C"
    ) -> np.ndarray:
        """A fresh array; raises ``MemoryError`` where the device's memory is full."""
        return self._made(shape, dtype, order, arriving=False)

    def _made(
        self, shape: tuple[int, ...], dtype: np.dtype, order: str | Sequence[int], arriving: bool
    ) -> np.ndarray:
        axes = tuple(range(len(shape))) if isinstance(order, str) else tuple(order)
        memory: Any = _Block(self.driver, math.prod(shape) * dtype.itemsize, arriving)
        lying = np.asarray(memory).view(dtype).reshape([shape[axis] for axis in axes])
        return lying.transpose(np.argsort(axes)) if axes else lying

    def is_there(self, array: np.ndarray) -> bool:
        """Whether it lies in the device's memory."""
        return self.driver.address_of(array) is not None

    def bring(self, array: np.ndarray) -> np.ndarray:
        """A copy on the device."""
        order = _axes(array)
        there = self._made(array.shape, array.dtype, order, arriving=True)
        self.driver.copy_in(there.ctypes.data, array.transpose(order))
        return there

    def bring_as_it_lies(self, array: np.ndarray) -> np.ndarray:
        """A copy on the device with the same strides: of all memory that the array spans."""
        low, high = _bounds(array)
        span: Any = _Lying(low, high - low)
        whole = self.bring(np.asarray(span))
        return np.ndarray(
            array.shape, array.dtype, whole.data, array.ctypes.data - low, array.strides)

    def write(self, target: np.ndarray, source: np.ndarray) -> None:
        """Copy elements, by way of the host, to fresh memory, which has no gaps."""
        is_there = self.driver.address_of(source) is not None
        order = _axes(target)
        lying = (self.fetch(source) if is_there else source).transpose(order)
        if _span(target) != lying.nbytes:
            raise InternalError("a copy on a device to memory with gaps")
        if lying.size:
            self.driver.copy_in(_first(target), lying)

    def moment(self, nbytes: int) -> Any:
        """See `fusec.codegen.backend.DeviceArrays`."""
        return self.driver.moment(nbytes)

    def fetch(self, array: np.ndarray, after: Any = None) -> np.ndarray:
        """A copy in the host's memory, once the device has done all work it was asked for, or that
        until the `moment` ``after``."""
        order = _axes(array)
        lying = np.empty([array.shape[axis] for axis in order], array.dtype)
        span = _span(array)
        if span == lying.nbytes and min(array.strides, default=0) >= 0:
            self.driver.copy_out(lying, _first(array), after)
        else:  # it shows a part of its memory, or from the end on
            whole = np.empty(span, np.uint8)
            self.driver.copy_out(whole, _first(array), after)
            offset = array.ctypes.data - _first(array)
            lying[...] = np.ndarray(array.shape, array.dtype, whole.data, offset,
                                    array.strides).transpose(order)
        return lying.transpose(np.argsort(order)) if order else lying


def _axes(array: np.ndarray) -> tuple[int, ...]:
    """The axes from the one with the largest steps to the one with the smallest."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))


def _bounds(array: np.ndarray) -> tuple[int, int]:
    return np.lib.array_utils.byte_bounds(array) if array.size else (array.ctypes.data,) * 2


def _first(array: np.ndarray) -> int:
    return _bounds(array)[0]


def _span(array: np.ndarray) -> int:
    low, high = _bounds(array)
    return high - low
