"""Library calls on the GPU: CuPy's functions of NumPy's names, so cuBLAS, cuSOLVER and cuFFT.

A node is one of these where its row says that CuPy's function does the same, its sizes are known,
and its numbers are floats or complex.  Results are copied to where the plan has them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.ir import Node
from fusec.ops.library import LIBRARY, leaves_of, run_call
from fusec.records import replace

from .cupy_arrays import CupyArrays

Made = Sequence[Callable[[], np.ndarray]]  # the memory of each result, made when it is needed
# What these parameters say CuPy understands as NumPy does.
_PARAMETERS = ("axis", "axes", "n", "s", "norm", "full_matrices", "compute_uv", "UPLO", "mode")


def is_called_on_gpu(node: Node) -> bool:
    """Whether CuPy computes the node."""
    if node.op != "MatMul":
        row = LIBRARY.get(node.op)
        if row is None or not row.gpu or any(
                pair[1] not in _PARAMETERS for pair in node.attrs["named"][1:]):
            return False
    types = [*(v.type for v in node.inputs), *node.types]
    return all(t.is_static and 0 not in t.shape for t in types) and all(
        t.dtype.kind in "fc" and t.dtype.itemsize > 2 for t in types)


class GpuCall:
    """``call(operands, made)``: the results, in memory that ``made`` gives."""

    def __init__(self, node: Node, arrays: CupyArrays) -> None:
        self.node, self.arrays, self.cupy = node, arrays, arrays.driver.cupy
        self._nbytes = sum(int(t.nbytes) for t in node.types)

    def __call__(self, operands: Sequence[Any], made: Made) -> list[np.ndarray]:
        driver = self.arrays.driver
        given = [self.arrays.over(x) if self._is_array(x) else x for x in operands]
        results = leaves_of(driver.with_room(self._nbytes, lambda: self._called(given)))
        with driver.device, driver.stream:
            return [self._kept(r, memory()) for r, memory in zip(results, made, strict=True)]

    def _is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray) and self.arrays.driver.address_of(x) is not None

    def _called(self, operands: Sequence[Any]) -> Any:
        row = LIBRARY.get(self.node.op)
        if row is None:
            return self.cupy.matmul(*operands)
        own: Any = self.cupy
        for part in [*(row.function.__module__ or "").split(".")[1:], row.function.__name__]:
            own = getattr(own, part)
        call, attrs = replace(row, function=own), self.node.attrs
        # Without it, wrong results stand for matrices that NumPy refuses.
        with importlib.import_module("cupyx").errstate(linalg="raise"):
            return run_call(call, operands, attrs["form"], attrs["named"])

    def _kept(self, result: Any, memory: np.ndarray) -> np.ndarray:
        if self._is_array(memory):
            self.arrays.over(memory)[...] = result
        else:  # a number, which the plan has on the host
            memory[...] = result.get()
        return memory
