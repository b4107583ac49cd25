"""A device with memory of its own: arrays in mapped memory, kernels through the interpreter of loop
IR.  This file and the line ``KINDS["heap"] = KIND`` are all that there is to it.

An array is NumPy's, over addresses that no memory has: the host may shape and slice it, and whoever
reads or writes an element of it without `HeapArrays` ends the process.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.backend import Backend, DeviceArrays
from fusec.codegen.backends import DeviceKind
from fusec.codegen.kernels.kernel_nodes import is_control_of, is_of_kernels
from fusec.codegen.kernels.loop_ir import Kernel
from fusec.codegen.reference_backend import ReferenceBackend
from fusec.codegen.whole_kernels import Run
from fusec.core import locks
from fusec.ir import Node
from fusec.ir.sizes.bindings import Bindings

BASE = 1 << 55  # no system gives a process memory there
ALIGNMENT = 64
NBYTES = 1 << 30
KIND = DeviceKind("heap_backend", memory=lambda: NBYTES)
Range = tuple[int, int]


class Heap:
    """Ranges of mapped memory, which takes none before it is used, each in the first gap that is
    large enough."""

    def __init__(self, nbytes: int) -> None:
        self.memory = mmap.mmap(-1, nbytes)
        self._gaps: list[Range] = [(0, nbytes)]
        self._dropped: list[Range] = []  # finalizers run anywhere: they only append to it
        self._lock = locks.Lock()

    def allocate(self, nbytes: int) -> Range:
        """A range of that many bytes or more; raises ``MemoryError``."""
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        with self._lock:
            self._merge()
            for number, (begin, end) in enumerate(self._gaps):
                if end - begin >= size:
                    self._gaps[number] = begin + size, end
                    return begin, begin + size
        raise MemoryError(f"the heap has no room for {nbytes} bytes")

    def drop(self, taken: Range) -> None:
        """Let others have it."""
        self._dropped.append(taken)

    @property
    def used(self) -> int:
        """Bytes that somebody has."""
        with self._lock:
            self._merge()
            return len(self.memory) - sum(end - begin for begin, end in self._gaps)

    def _merge(self) -> None:
        gaps: list[Range] = []
        for begin, end in sorted([*self._gaps, *(self._dropped.pop() for _ in [*self._dropped])]):
            if gaps and gaps[-1][1] == begin:
                begin = gaps.pop()[0]
            gaps.append((begin, end))
        self._gaps = gaps


class Block:
    """A range as NumPy takes it over; it is dropped when no array shows it any more."""

    def __init__(self, heap: Heap, nbytes: int) -> None:
        taken = heap.allocate(nbytes)
        weakref.finalize(self, heap.drop, taken).atexit = False
        self.__array_interface__ = {
            "data": (BASE + taken[0], False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


class HeapArrays(DeviceArrays):
    """See the module docstring."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype, order: str | Sequence[int] = "C"
    ) -> np.ndarray:
        axes = tuple(range(len(shape))) if isinstance(order, str) else tuple(order)
        block: Any = Block(self.heap, math.prod(shape) * dtype.itemsize)
        lying = np.asarray(block).view(dtype).reshape([shape[axis] for axis in axes])
        return lying.transpose(np.argsort(axes)) if axes else lying

    def is_there(self, array: np.ndarray) -> bool:
        return array.ctypes.data >= BASE

    def bring(self, array: np.ndarray) -> np.ndarray:
        order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        there = self.empty(array.shape, array.dtype, order)
        self.write(there, array)
        return there

    def write(self, target: np.ndarray, source: np.ndarray) -> None:
        np.copyto(self.elements(target), self.elements(source) if self.is_there(source) else source)

    def fetch(self, array: np.ndarray, after: Any = None) -> np.ndarray:
        return self.elements(array).copy(order="K")

    def elements(self, array: np.ndarray) -> np.ndarray:
        """The array over the heap itself."""
        assert self.is_there(array), "an array of the host's on the device"
        offset = array.ctypes.data - BASE
        return np.ndarray(array.shape, array.dtype, self.heap.memory, offset, array.strides)


class HeapBackend(ReferenceBackend):
    """The oracle on elements of the heap; cells, which are numbers of a plan, are the host's."""

    name = "heap"
    compile_control = Backend.compile_control  # the oracle's programs read the host's memory

    def __init__(self) -> None:
        self.arrays: HeapArrays = HeapArrays(Heap(NBYTES))
        self.ran = 0

    def has_kernel(self, node: Node) -> bool:
        return is_of_kernels(node) or is_control_of(node, self.has_kernel)

    def runs(self, kernel: Kernel) -> Run:
        run = super().runs(kernel)

        def on_heap(buffers: Sequence[np.ndarray], sizes: Bindings) -> bool:
            self.ran += 1
            return run([self._elements(b) for b in buffers], sizes)

        return on_heap

    def _elements(self, buffer: np.ndarray) -> np.ndarray:
        is_cell = not buffer.ndim and not self.arrays.is_there(buffer)
        return buffer if is_cell else self.arrays.elements(buffer)


BACKEND = HeapBackend()
