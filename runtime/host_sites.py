"""Python's side of calls from native loops; see ``fusec.codegen.cpu.loops.host_calls``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.codegen.cpu.loops.host_calls import HostSite, HostValue
from fusec.errors import InternalError
from fusec.ir import TensorType
from fusec.ops.host_calls import prepared

CALLBACK = ctypes.PYFUNCTYPE(ctypes.c_int64)
Cell = Callable[[int, np.dtype], np.ndarray]  # a word, by its number, as an array of one number


class _Memory:
    """Memory that belongs to the native function, as NumPy's array interface."""

    def __init__(self, address: int, value: HostValue) -> None:
        self.__array_interface__ = {
            "data": (address, False), "shape": value.type.shape, "strides": value.strides,
            "typestr": value.type.dtype.str, "version": 3,
        }


class HostCaller:
    """The callbacks of one argument block; ``error`` is what the last one raised."""

    def __init__(self, sites: list[HostSite], cell: Cell) -> None:
        self.cell = cell
        self.error: BaseException | None = None
        self.callbacks = [CALLBACK(self._callback(site)) for site in sites]

    def address(self, number: int) -> int:
        return int(ctypes.cast(self.callbacks[number], ctypes.c_void_p).value or 0)

    def _callback(self, site: HostSite) -> Callable[[], int]:
        run = prepared(site.node.attrs)
        operands = [self._reader(value) for value in site.operands]
        keep = [self._writer(value) for value in site.results]

        def call() -> int:
            try:
                result = run([read() for read in operands])
                for write in keep:
                    write(result)
            except BaseException as error:  # Ctrl-C too: native code cannot pass it on
                self.error = error
                return 1
            return 0

        return call

    def _reader(self, value: HostValue) -> Callable[[], Any]:
        if value.strides is not None:
            return self._array(value)
        number = self.cell(value.word, value.type.dtype)
        return number.item if value.type.is_weak else lambda: number[0]

    def _array(self, value: HostValue) -> Callable[[], np.ndarray]:
        address = self.cell(value.word, np.dtype(np.int64))
        return lambda: np.asarray(_Memory(address.item(), value))

    def _writer(self, value: HostValue) -> Callable[[Any], None]:
        type_ = value.type
        if value.strides is None:
            number = self.cell(value.word, type_.dtype)
            return lambda result: number.__setitem__(0, _checked(result, type_))
        array = self._array(value)
        return lambda result: array().__setitem__(..., _checked(result, type_))


def _checked(result: Any, type_: TensorType) -> Any:
    """The result if it is of the type that was asked of NumPy while tracing."""
    if type(result) is not float or type_.dtype != np.float64 or type_.shape:
        array = np.asarray(result)
        if array.dtype != type_.dtype or array.shape != type_.shape:
            raise InternalError(f"a host call gave {array.dtype}{list(array.shape)} where its type "
                                f"is {type_}")
    return result
