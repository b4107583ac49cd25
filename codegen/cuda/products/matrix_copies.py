"""Kernels that copy a matrix from where it lies to where a library wants it, and write unit
matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..module import CudaKernel, CudaModule, CudaParam

_THREADS, _MOST_BLOCKS = 256, 1024
_NUMBERS = ("rows", "columns", "source_row", "source_column", "target_row", "target_column")
_TEXT = """\
namespace fusec {
typedef long long i64;
typedef unsigned long long u64;
struct Pair {
  u64 first, second;
};
template <class T> __device__ __forceinline__ void copy_matrix(
    const T *source, T *target, i64 rows, i64 columns, i64 source_row, i64 source_column,
    i64 target_row, i64 target_column, i64 is_lower) {
  const i64 step = i64(gridDim.x) * blockDim.x, count = rows * columns;
  for (i64 n = i64(blockIdx.x) * blockDim.x + threadIdx.x; n < count; n += step) {
    const i64 row = n / columns, column = n % columns;
    T x = T();
    if (is_lower == 0 || column <= row) x = source[row * source_row + column * source_column];
    target[row * target_row + column * target_column] = x;
  }
}
template <class T> __device__ __forceinline__ T of_bits(u64 bits) { return T(bits); }
template <> __device__ __forceinline__ Pair of_bits<Pair>(u64 bits) { return Pair{bits, 0}; }
template <class T> __device__ __forceinline__ void unit_matrix(T *target, i64 size, i64 one) {
  const i64 step = i64(gridDim.x) * blockDim.x, count = size * size;
  for (i64 n = i64(blockIdx.x) * blockDim.x + threadIdx.x; n < count; n += step)
    target[n] = of_bits<T>(n % (size + 1) == 0 ? u64(one) : 0);
}
}  // namespace fusec
"""
_KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}) copy_matrix_{itemsize}(
    const char *source, char *target, {numbers}, long long is_lower) {{
  fusec::copy_matrix<{type}>(
      reinterpret_cast<const {type} *>(source), reinterpret_cast<{type} *>(target),
      {names}, is_lower);
}}
extern "C" __global__ void __launch_bounds__({threads}) unit_matrix_{itemsize}(
    char *target, long long size, long long one) {{
  fusec::unit_matrix<{type}>(reinterpret_cast<{type} *>(target), size, one);
}}
"""
_TYPES: Mapping[int, str] = {4: "unsigned", 8: "fusec::u64", 16: "fusec::Pair"}


def _module() -> CudaModule:
    texts, kernels = [_TEXT], []
    numbers = tuple(CudaParam(name, "int64") for name in (*_NUMBERS, "is_lower"))
    for itemsize, kind in _TYPES.items():
        texts.append(_KERNEL.format(
            threads=_THREADS, itemsize=itemsize, type=kind, names=", ".join(_NUMBERS),
            numbers=", ".join(f"long long {name}" for name in _NUMBERS)))
        target = CudaParam("target", "pointer", True)
        kernels += [
            CudaKernel(f"copy_matrix_{itemsize}", (
                CudaParam("source", "pointer"), target, *numbers), _THREADS),
            CudaKernel(f"unit_matrix_{itemsize}", (
                target, CudaParam("size", "int64"), CudaParam("one", "int64")), _THREADS)]
    return CudaModule("".join(texts), tuple(kernels))


MODULE = _module()


class MatrixCopies:
    """Copies and unit matrices on one GPU; strides are in elements."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        """``functions``: the module's, as CuPy has them."""
        self._functions = functions

    def copy(
        self, stream: Any, itemsize: int, source: int, target: int, shape: tuple[int, int],
        steps: tuple[int, int], into: tuple[int, int], is_lower: bool = False,
    ) -> None:
        """``is_lower``: what is above the diagonal becomes 0."""
        self._ask(stream, f"copy_matrix_{itemsize}", shape[0] * shape[1], [source, target],
                  [*shape, *steps, *into, is_lower])

    def unit(self, stream: Any, dtype: np.dtype, target: int, size: int) -> None:
        """A unit matrix without gaps."""
        one = int(np.frombuffer(np.ones(1, dtype).tobytes().ljust(8, b"\0"), np.int64)[0])
        self._ask(stream, f"unit_matrix_{dtype.itemsize}", size * size, [target], [size, one])

    def _ask(
        self, stream: Any, name: str, count: int, addresses: Sequence[int], words: Sequence[int]
    ) -> None:
        blocks = min(-(-count // _THREADS), _MOST_BLOCKS)
        self._functions[name](
            (blocks, 1, 1), (_THREADS, 1, 1),
            (*map(np.uint64, addresses), *map(np.int64, words)), shared_mem=0, stream=stream)
