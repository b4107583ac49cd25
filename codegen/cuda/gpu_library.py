"""Library calls on the GPU: CuPy's functions of NumPy's names, so cuBLAS, cuSOLVER and cuFFT.

Results are copied to where the plan has them; those of sizes that the call decides are CuPy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np

from fusec.core.records import replace
from fusec.errors import UnsupportedError
from fusec.ir import Node
from fusec.ops.calls.library import LIBRARY, LibraryCall, leaves_of, run_call

from ..plan.call_plan import contiguous_strides
from .driver.cupy_arrays import CupyArrays
from .driver.cupy_driver import Lent
from .driver.number_blocks import ConstantArray
from .library_functions import REFUSALS, function_of, may_refuse, raising
from .products.calls_in_loops import CallInLoop
from .products.direct_call import DirectCall, direct_call
from .products.matrix_product import Laid
from .products.refusals import LibraryRefusedError

# The memory of each result, made when it is needed; None: the array that the library makes.
Made = Sequence[Callable[[], np.ndarray | None]]


class GpuLibraryCall:
    """``call(operands, made)``: the results, in memory that ``made`` gives."""

    def __init__(self, node: Node, arrays: CupyArrays) -> None:
        self.node, self.arrays, self.cupy = node, arrays, arrays.driver.cupy
        self._nbytes = sum(int(t.nbytes) for t in node.types if t.is_static)
        self._constants: dict[int, ConstantArray] = {}  # by number of the operand

    def __call__(self, operands: Sequence[Any], made: Made) -> list[np.ndarray]:
        driver = self.arrays.driver
        given = [self._given(number, x) for number, x in enumerate(operands)]
        with driver.faults.naming(), driver.device, driver.stream:
            direct = self._direct(given)
            with suppress(LibraryRefusedError):
                result = direct and driver.with_room(
                    self._nbytes, partial(self._asked, direct, given))
                if result is not None:
                    return [self._kept(result, made[0](), 0)]
            results = leaves_of(driver.with_room(self._nbytes, lambda: self._called(given)))
            return [self._kept(r, memory(), number)
                    for number, (r, memory) in enumerate(zip(results, made, strict=True))]

    def _direct(self, given: Sequence[Any]) -> DirectCall | None:
        """How NVIDIA's library is called, as in prepared calls, so that both have the same bits."""
        types = self.node.types
        if len(types) != 1 or types[0].kind != "array" or not types[0].is_static or not all(
                isinstance(x, self.cupy.ndarray) for x in given):
            return None
        (type_,) = types
        laid = [Laid(x.shape, x.strides) for x in given]
        result = Laid(type_.shape, contiguous_strides(type_.shape, type_.dtype.itemsize))
        return direct_call(self.arrays.driver, self.node, laid, np.dtype(given[0].dtype),
                           (result, type_.dtype))

    def _asked(self, direct: DirectCall, given: Sequence[Any]) -> Any:
        """The result; None: the library has refused the matrix."""
        stream, type_ = self.arrays.driver.stream, self.node.types[0]
        out, room = self.cupy.ndarray(type_.shape, type_.dtype), self.cupy.cuda.alloc(direct.nbytes)
        where = [*(x.data.ptr for x in (*given, out)), room.ptr]
        if not direct.words:
            direct.ask(stream, *where)
            return out
        words = self.cupy.asarray(np.zeros(direct.words, np.int32))
        direct.ask(stream, *where, words.data.ptr)
        return None if words.get().any() else out

    def _given(self, number: int, x: Any) -> Any:
        if self._is_array(x):
            return self.arrays.over(x)
        if not isinstance(x, np.ndarray) or not x.ndim:
            return x
        known = self._constants.get(number)
        if known is None or known.array is not x:
            known = self._constants[number] = self.arrays.constant(x)
        return known()

    def _is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray) and self.arrays.driver.address_of(x) is not None

    def _called(self, operands: Sequence[Any]) -> Any:
        row, function = LIBRARY.get(self.node.op), function_of(self.node, self.cupy)
        if row is None:
            return function(*operands)
        call, attrs = replace(row, function=function), self.node.attrs
        try:
            with raising() if may_refuse(self.node) else nullcontext():
                return run_call(call, operands, attrs["form"], attrs["named"])
        except REFUSALS:
            return self._judged_by_numpy(row, operands)

    def _judged_by_numpy(self, row: LibraryCall, operands: Sequence[Any]) -> Any:
        """NumPy's answer for operands that CuPy refuses: its error, in its words."""
        host = [x.get() if isinstance(x, self.cupy.ndarray) else x for x in operands]
        results = leaves_of(run_call(row, host, self.node.attrs["form"], self.node.attrs["named"]))
        for result, type_ in zip(map(np.asarray, results), self.node.types, strict=True):
            if type_.is_static and result.shape != type_.shape:
                raise UnsupportedError(
                    f"the size of a result of {self.node.op} depends on the data: it is "
                    f"{result.shape} here, {type_.shape} was compiled", loc=self.node.loc,
                    cure="call it before or after the compiled function")
        return [self.cupy.asarray(np.asarray(r)) for r in results]

    def _kept(self, result: Any, memory: np.ndarray | None, number: int) -> np.ndarray:
        if memory is None:
            dtype = self.node.types[number].dtype
            own = self.cupy.ascontiguousarray(result, dtype=dtype)
            return self.arrays.lent(own)
        if self._is_array(memory):
            self.arrays.over(memory)[...] = result
        else:  # a number, which the plan has on the host
            memory[...] = result.get()
        return memory


def call_at(node: Node, arrays: CupyArrays) -> CallInLoop:
    """The call by addresses: arrays, operands and results, are pairs of an address and their shape,
    strides and dtype."""
    call = GpuLibraryCall(node, arrays)

    def run(operands: Sequence[Any], results: Sequence[Any]) -> None:
        call([_at(x) for x in operands], [partial(_at, x) for x in results])

    return CallInLoop(node, arrays.driver, run)


def _at(x: Any) -> Any:
    """The array at an address; a number as it is."""
    if type(x) is not tuple:
        return x
    address, (shape, strides, dtype) = x
    return np.asarray(Lent(None, {"data": (address, False), "shape": shape, "strides": strides,
                                  "typestr": dtype.str, "version": 3}))
