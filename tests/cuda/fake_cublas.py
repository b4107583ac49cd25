"""The part of cuBLAS that the GPU's driver calls, on the emulated device's streams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fake_streams import Streams

_DTYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
_HANDLE, _TF32 = 77, 3
INVALID, NOT_SUPPORTED = 7, 15


class FakeCublas:
    """Functions of cuBLAS by their names; ``wrong``: products have other numbers;
    ``status`` is the answer of products; ``spoils``: they are refused in graphs."""

    def __init__(self, streams: Streams, calls: list[str]) -> None:
        self.streams, self.calls = streams, calls
        self.stream = self.room = self.mode = 0
        self.wrong, self.status, self.spoils = False, 0, False

    def __getattr__(self, name: str) -> Callable[..., int]:
        letter, kind = name.removeprefix("cublas")[:1], name.removeprefix("cublas")[1:]
        if letter not in _DTYPES or kind not in ("gemm_v2", "gemmStridedBatched"):
            raise AttributeError(name)

        def gemm(*args: int) -> int:
            assert not self.streams.of(self.stream).is_capturing() or self.room, (
                "without a workspace it allocates while the stream is capturing")
            is_many = kind != "gemm_v2"
            return self._gemm(letter, is_many, *args)

        return gemm

    def cublasCreate_v2(self, handle: int) -> int:
        ctypes.c_void_p.from_address(handle).value = _HANDLE
        return 0

    def cublasSetStream_v2(self, handle: int, stream: int) -> int:
        assert handle == _HANDLE
        self.stream, self.room = stream, 0  # which resets the workspace
        return 0

    def cublasSetMathMode(self, handle: int, mode: int) -> int:
        assert handle == _HANDLE and mode in (0, _TF32)
        self.mode = mode
        return 0

    def cublasSetWorkspace_v2(self, handle: int, room: int, nbytes: int) -> int:
        assert handle == _HANDLE and room % 256 == 0 and nbytes >= 1 << 22
        self.streams.driver._check(room, nbytes)
        self.room = room
        return 0

    def cublasCsscal_v2(self, handle: int, count: int, factor: int, at: int, step: int) -> int:
        return self._scale(np.dtype(np.complex64), handle, count, factor, at, step)

    def cublasZdscal_v2(self, handle: int, count: int, factor: int, at: int, step: int) -> int:
        return self._scale(np.dtype(np.complex128), handle, count, factor, at, step)

    def _scale(
        self, dtype: np.dtype, handle: int, count: int, factor: int, at: int, step: int
    ) -> int:
        assert handle == _HANDLE and step == 1
        self.calls.append("cublas scal")
        real = np.dtype(f"f{dtype.itemsize // 2}")
        by, nbytes = real.type(_number(factor, real)), count * dtype.itemsize
        self.streams.driver._check(at, nbytes)

        def scale() -> None:
            memory = (ctypes.c_uint8 * nbytes).from_address(at)
            numbers = np.frombuffer(memory, dtype)
            numbers *= by

        self.streams.of(self.stream).does(scale)
        return self.status

    def _gemm(self, letter: str, is_many: bool, handle: int, *args: int) -> int:
        """Column by column, as in the documentation of BLAS."""
        dtype = np.dtype(_DTYPES[letter])
        values = [*args]
        ta, tb, m, n, k = (values.pop(0) for _ in range(5))
        alpha = _number(values.pop(0), dtype)
        a, lda, of_a = values.pop(0), values.pop(0), values.pop(0) if is_many else 0
        b, ldb, of_b = values.pop(0), values.pop(0), values.pop(0) if is_many else 0
        beta, c, ldc = _number(values.pop(0), dtype), values.pop(0), values.pop(0)
        of_c, count = (values.pop(0), values.pop(0)) if is_many else (0, 1)
        assert handle == _HANDLE and not values and (alpha, beta) == (1, 0)
        if lda < max(1, k if ta else m) or ldb < max(1, n if tb else k) or ldc < max(1, m):
            return INVALID
        self.calls.append(f"cublas{letter}gemm")
        if self.status or (self.spoils and self.streams.of(self.stream).is_capturing()):
            return self.status or NOT_SUPPORTED

        rounds = self.mode == _TF32 and letter == "S"

        def multiply() -> None:
            left = self._matrices(a, (k, m) if ta else (m, k), lda, of_a, count, dtype)
            right = self._matrices(b, (n, k) if tb else (k, n), ldb, of_b, count, dtype)
            left = left.swapaxes(1, 2) if ta else left
            right = right.swapaxes(1, 2) if tb else right
            if rounds:
                left, right = _to_tf32(left), _to_tf32(right)
            out = self._matrices(c, (m, n), ldc, of_c, count, dtype)
            out[...] = left @ right + self.wrong

        self.streams.of(self.stream).does(multiply)
        return 0

    def _matrices(
        self, address: int, shape: tuple[int, int], leading: int, step: int, count: int,
        dtype: np.dtype,
    ) -> np.ndarray:
        """The memory that it shows is checked."""
        rows, columns = shape
        last = (count - 1) * step + (columns - 1) * leading + rows
        self.streams.driver._check(address, last * dtype.itemsize)
        memory = (ctypes.c_uint8 * (last * dtype.itemsize)).from_address(address)
        size = dtype.itemsize
        return np.ndarray((count, rows, columns), dtype, memory,
                          strides=(step * size, size, leading * size))


def _to_tf32(x: np.ndarray) -> np.ndarray:
    """To 10 bits behind the point, the nearest."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def _number(address: int, dtype: np.dtype) -> Any:
    buffer = (ctypes.c_uint8 * dtype.itemsize).from_address(address)
    return np.frombuffer(buffer, dtype)[0]
