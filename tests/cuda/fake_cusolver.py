"""The part of cuSOLVER that the GPU's driver calls, on the emulated device's streams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fake_streams import Streams

_DTYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
_HANDLE, _UPPER = 78, 1
_WORK = 33  # elements
INVALID, NOT_SUPPORTED = 3, 9


class FakeCusolver:
    """Functions of cuSOLVER by their names; ``wrong``: results have other numbers; ``status`` is
    the answer of factors, ``spoils``: they are refused in graphs; ``once``: a graph gives what
    it gave when it was captured; ``silent``: nothing is refused."""

    def __init__(self, streams: Streams, calls: list[str]) -> None:
        self.streams, self.calls = streams, calls
        self.stream, self.status = 0, 0
        self.wrong = self.spoils = self.once = self.silent = False

    def __getattr__(self, name: str) -> Callable[..., int]:
        letter, kind = name.removeprefix("cusolverDn")[:1], name.removeprefix("cusolverDn")[1:]
        function = getattr(type(self), f"_{kind}", None)
        if letter not in _DTYPES or function is None:
            raise AttributeError(name)

        def call(handle: int, *args: Any) -> int:
            assert handle == _HANDLE
            if kind.endswith("bufferSize"):
                return self._size(*args)
            self.calls.append(f"cusolver {letter}{kind}")
            if self.status or (self.spoils and self._stream.is_capturing()):
                return self.status or NOT_SUPPORTED
            work = function(self, np.dtype(_DTYPES[letter]), *args)
            if isinstance(work, int):
                return work
            if self.once and self._stream.is_capturing():
                return 0
            self._stream.does(work)
            return 0

        return call

    @property
    def _stream(self) -> Any:
        return self.streams.of(self.stream)

    def cusolverDnCreate(self, handle: int) -> int:
        ctypes.c_void_p.from_address(handle).value = _HANDLE
        return 0

    def cusolverDnSetStream(self, handle: int, stream: int) -> int:
        assert handle == _HANDLE
        self.stream = stream
        return 0

    def _size(self, *args: Any) -> int:
        *_, at = args
        ctypes.c_int.from_address(at).value = _WORK
        return 0

    _potrf_bufferSize = _getrf_bufferSize = _size

    def _potrf(
        self, dtype: np.dtype, fill: int, n: int, at: int, leading: int, work: int, size: int,
        info: int,
    ) -> Any:
        assert fill == _UPPER and leading >= n and size == _WORK
        self._check(work, size * dtype.itemsize)

        def factor() -> None:
            a, said = self._matrix(at, n, n, leading, dtype), self._ints(info, 1)
            full = np.triu(a) + np.triu(a, 1).T.conj()
            try:
                a[np.triu_indices(n)] = np.linalg.cholesky(full).T.conj()[np.triu_indices(n)]
                a[0, 0] += self.wrong
                said[0] = 0
            except np.linalg.LinAlgError:
                said[0] = 0 if self.silent else n

        return factor

    def _getrf(
        self, dtype: np.dtype, m: int, n: int, at: int, leading: int, work: int, order: int,
        info: int,
    ) -> Any:
        assert m == n
        self._check(work, _WORK * dtype.itemsize)

        def factor() -> None:
            a, said = self._matrix(at, n, n, leading, dtype), self._ints(info, 1)
            rows, said[0] = self._ints(order, n), 0
            for k in range(n):
                other = k + int(np.argmax(np.abs(a[k:, k])))
                rows[k] = other + 1
                a[[k, other]] = a[[other, k]]
                if a[k, k] == 0:
                    said[0] = said[0] or (0 if self.silent else k + 1)
                    continue
                a[k + 1:, k] /= a[k, k]
                a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])

        return factor

    def _getrs(
        self, dtype: np.dtype, way: int, n: int, columns: int, at: int, leading: int, order: int,
        side: int, side_leading: int, info: int,
    ) -> Any:
        assert way in (0, 1) and side_leading >= n

        def solve() -> None:
            a, b = (self._matrix(address, n, k, step, dtype) for address, k, step in (
                (at, n, leading), (side, columns, side_leading)))
            lower, upper = np.tril(a, -1) + np.eye(n, dtype=dtype), np.triu(a)
            with np.errstate(all="ignore"):
                if not np.diag(upper).all():
                    b[...] = np.nan
                elif way == 0:
                    for k, row in enumerate(self._ints(order, n)):
                        b[[k, row - 1]] = b[[row - 1, k]]
                    b[...] = np.linalg.solve(upper, np.linalg.solve(lower, b))
                else:
                    b[...] = np.linalg.solve(lower.T, np.linalg.solve(upper.T, b))
                    for k, row in reversed([*enumerate(self._ints(order, n))]):
                        b[[k, row - 1]] = b[[row - 1, k]]
            b[0, 0] += self.wrong
            self._ints(info, 1)[0] = 0

        return solve

    def _ints(self, at: int, count: int) -> np.ndarray:
        self._check(at, 4 * count)
        memory = (ctypes.c_uint8 * (4 * count)).from_address(at)
        return np.frombuffer(memory, np.int32)

    def _matrix(
        self, at: int, rows: int, columns: int, leading: int, dtype: np.dtype
    ) -> np.ndarray:
        last, size = (columns - 1) * leading + rows, dtype.itemsize
        self._check(at, last * size)
        memory = (ctypes.c_uint8 * (last * size)).from_address(at)
        return np.ndarray((rows, columns), dtype, memory, strides=(size, leading * size))

    def _check(self, address: int, nbytes: int) -> None:
        self.streams.driver._check(address, nbytes)
