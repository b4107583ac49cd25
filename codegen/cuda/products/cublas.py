"""cuBLAS, called directly: CuPy's wrappers refuse while a graph is captured, and cost more.

It is the library that the process has loaded, CuPy's unless another package was first.  A handle is
this module's own; each call gives it the stream and, after that, which resets it, the workspace.
Products are by GEMM in the precision of their operands (in TF32 where a program permits it, whose
operands have 10 bits behind the point), without atomics, so that the same call
gives the same bits.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fusec.core import locks

from ..driver.driver import GpuDriver
from .matrix_product import Laid, MatrixProduct, matrix_product
from .refusals import LibraryRefusedError

MIB = 1 << 20
_HOPPER = 90
_STATUS = {1: "not initialised", 3: "allocation failed", 7: "invalid value",
           8: "architecture mismatch", 11: "mapping error", 13: "execution failed",
           14: "internal error", 15: "not supported", 16: "licence error"}
_DEFAULT_MATH, _TF32_MATH = 0, 3  # cublasMath_t
_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_SCALES = {"C": "Csscal", "Z": "Zdscal"}  # complex numbers by real ones
_ONE_OF = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}


def workspace(capability: int) -> int:
    """The bytes that NVIDIA's documentation of cuBLAS recommends (section cublasSetWorkspace)."""
    return (32 if capability >= _HOPPER else 4) * MIB


def loaded_library() -> Any:
    """The library that this process has loaded for CuPy; raises OSError."""
    return _declared(library_loaded("libcublas.so"))


def library_loaded(name: str) -> ctypes.CDLL:
    """A library of NVIDIA's that this process has loaded for CuPy; raises OSError."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith(name):
            return ctypes.CDLL(f"/{path}")
    raise OSError(f"CuPy has loaded no {name}")


def _declared(library: Any) -> Any:
    """With the types of what is called here (cublas_api.h)."""
    pointers = {"cublasCreate_v2": [_POINTER], "cublasSetStream_v2": [_POINTER] * 2,
                "cublasSetMathMode": [_POINTER, _INT],
                "cublasSetWorkspace_v2": [_POINTER, _POINTER, ctypes.c_size_t]}
    sizes = [_POINTER, *[_INT] * 5, _POINTER]
    for letter in _ONE_OF:
        pointers[f"cublas{letter}gemm_v2"] = [
            *sizes, _POINTER, _INT, _POINTER, _INT, _POINTER, _POINTER, _INT]
        pointers[f"cublas{letter}gemmStridedBatched"] = [
            *sizes, _POINTER, _INT, _LONG, _POINTER, _INT, _LONG, _POINTER, _POINTER, _INT, _LONG,
            _INT]
    for kind in _SCALES.values():
        pointers[f"cublas{kind}_v2"] = [_POINTER, _INT, _POINTER, _POINTER, _INT]
    for name, types in pointers.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, _INT
    return library


class Cublas:
    """Products of one GPU; ``refused`` says why there are none."""

    def __init__(self, driver: GpuDriver) -> None:
        self.driver, self.workspace = driver, workspace(driver.capability)
        self._lock, self._handle, self.refused = locks.Lock(), _POINTER(), ""
        self._tried: set[str] = set()
        self._mode = _DEFAULT_MATH
        self._numbers = {(letter, value): np.array(value, dtype)
                         for letter, dtype in _ONE_OF.items() for value in (0, 1)}
        try:
            with driver.faults.naming(), driver.device:
                driver.device.cublas_handle  # noqa: B018  # which loads it
                self._library = loaded_library()
                self._check("cublasCreate_v2", ctypes.addressof(self._handle))
        except (OSError, AttributeError) as error:
            self.refused = str(error)
        except LibraryRefusedError:
            pass

    def product(
        self, dtype: np.dtype, left: Laid, right: Laid, result: Laid, is_estimate: bool = False,
    ) -> MatrixProduct | None:
        """The product, where cuBLAS can be called for it; of float32 ``is_estimate`` permits TF32.
        """
        made = matrix_product(dtype, left, right, result)
        if made is None or self.why_not(made.letter):
            return None
        if not is_estimate or made.letter != "S":
            return made
        return made._replace(is_tf32=True) if self._takes_modes() else None

    def _takes_modes(self) -> bool:
        """Whether the library takes both modes; asked once, so that `refused` is known early."""
        if "modes" not in self._tried:
            with self._lock, suppress(LibraryRefusedError):
                for mode in (_TF32_MATH, _DEFAULT_MATH):
                    self._check("cublasSetMathMode", self._handle.value, mode)
                self._mode = _DEFAULT_MATH
            self._tried.add("modes")
        return not self.refused

    def why_not(self, letter: str) -> str:
        """Why numbers of a kind are left to CuPy; empty where they are not.  The first time it
        compares a product with CuPy's."""
        if not self.refused and letter not in self._tried:
            try:
                with self.driver.faults.naming(), suppress(LibraryRefusedError):
                    self.driver.with_room(
                        self.workspace, lambda: self._compare(np.dtype(_ONE_OF[letter])))
            except MemoryError:
                return "the GPU has no room for its workspace"
            self._tried.add(letter)
        return self.refused

    def call(self, made: MatrixProduct, stream: Any, left: int, right: int, result: int,
             room: int) -> None:
        """Ask a stream for the product of matrices at these addresses; ``room``: that of so many
        bytes as `workspace`."""
        first, second = (right, left) if made.swapped else (left, right)
        one, zero = (int(self._numbers[made.letter, n].ctypes.data) for n in (1, 0))
        is_many = made.batch > 1
        args: list[int] = [int(made.first.is_transposed), int(made.second.is_transposed),
                           made.rows, made.columns, made.inner, one]
        for address, side in ((first, made.first), (second, made.second)):
            args += [address, side.leading, *([side.batch_stride] if is_many else [])]
        args += [zero, result, made.leading, *([made.batch_stride, made.batch] if is_many else [])]
        name = f"cublas{made.letter}gemm{'StridedBatched' if is_many else '_v2'}"
        mode = _TF32_MATH if made.is_tf32 else _DEFAULT_MATH
        with self._lock:
            if mode != self._mode:
                self._check("cublasSetMathMode", self._handle.value, mode)
                self._mode = mode
            self._check("cublasSetStream_v2", self._handle.value, stream.ptr)
            self._check("cublasSetWorkspace_v2", self._handle.value, room, self.workspace)
            self._check(name, self._handle.value, *args)

    def scale(self, letter: str, count: int, factor: np.ndarray, stream: Any, at: int) -> None:
        """Have a stream multiply complex numbers at an address by a real number, of their dtype."""
        with self._lock:
            self._check("cublasSetStream_v2", self._handle.value, stream.ptr)
            self._check(f"cublas{_SCALES[letter]}_v2", self._handle.value, count,
                        int(factor.ctypes.data), at, 1)

    def _check(self, name: str, *args: Any) -> None:
        status = int(getattr(self._library, name)(*args))
        if status:
            self.refused = f"{name}: {_STATUS.get(status, 'error')} ({status})"
            raise LibraryRefusedError("cuBLAS", self)

    def _compare(self, dtype: np.dtype) -> None:
        """A small product, one operand transposed, twice, with NumPy's, on the driver's stream."""
        cupy = self.driver.cupy
        left, right = (np.arange(2 * n, dtype=dtype).reshape(2, -1) for n in (12, 15))
        a, b = cupy.asarray(left), cupy.asarray(right)
        out, room = cupy.ndarray((2, 4, 5), dtype), cupy.cuda.alloc(self.workspace)
        size = dtype.itemsize
        made = matrix_product(dtype, Laid((2, 4, 3), (12 * size, 3 * size, size)),
                              Laid((2, 3, 5), (15 * size, size, 3 * size)),
                              Laid((2, 4, 5), (20 * size, 5 * size, size)))
        assert made is not None
        self.call(made, self.driver.stream, a.data.ptr, b.data.ptr, out.data.ptr, room.ptr)
        want = left.reshape(2, 4, 3) @ right.reshape(2, 5, 3).swapaxes(1, 2)
        if (out.get() != want).any():
            self.refused = "cuBLAS gives another product than NumPy"
