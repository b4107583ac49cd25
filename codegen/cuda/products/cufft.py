"""cuFFT, called directly: CuPy's functions refuse while a graph is captured, and cost more.

It is the library that the process has loaded for CuPy.  A plan is made for each size, without
memory of its own: a call gives it the stream and the memory that it works in.  Inverse transforms
are scaled by cuBLAS.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import numpy as np

from fusec.core import locks

from ..driver.driver import GpuDriver
from .cublas import Cublas, library_loaded
from .refusals import LibraryRefusedError
from .transform import Transform

_TYPES = {"C2C": 0x29, "R2C": 0x2A, "Z2Z": 0x69, "D2Z": 0x6A}  # cufftType
_FORWARD, _INVERSE = -1, 1
_STATUS = {1: "invalid plan", 2: "allocation failed", 3: "invalid type", 4: "invalid value",
           5: "internal error", 6: "execution failed", 7: "setup failed", 8: "invalid size",
           9: "unaligned data", 14: "not implemented", 16: "not supported"}
_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
MOST_PLANS = 256  # that are kept; a plan is some kilobytes of the GPU's memory
_LENGTH = 12  # of what is compared with NumPy


def loaded_library() -> Any:
    """The library that this process has loaded for CuPy; raises OSError."""
    library = library_loaded("libcufft.so")
    arrays = [_POINTER, _LONG, _LONG]  # of sizes around the numbers, with steps
    types = {
        "cufftCreate": [_POINTER], "cufftSetAutoAllocation": [_INT, _INT],
        "cufftMakePlanMany64": [_INT, _INT, _POINTER, *arrays, *arrays, _INT, _LONG, _POINTER],
        "cufftSetStream": [_INT, _POINTER], "cufftSetWorkArea": [_INT, _POINTER],
        "cufftExecC2C": [_INT, _POINTER, _POINTER, _INT],
        "cufftExecZ2Z": [_INT, _POINTER, _POINTER, _INT],
        "cufftExecR2C": [_INT, _POINTER, _POINTER], "cufftExecD2Z": [_INT, _POINTER, _POINTER]}
    for name, of in types.items():
        function = getattr(library, name)
        function.argtypes, function.restype = of, _INT
    return library


class Cufft:
    """Transforms of one GPU; ``refused`` says why there are none."""

    def __init__(self, driver: GpuDriver, cublas: Cublas) -> None:
        self.driver, self.cublas, self.refused = driver, cublas, ""
        self._lock = locks.Lock()
        self._plans: dict[tuple[str, int, int], tuple[int, int]] = {}  # handles, bytes
        self._tried: set[str] = set()
        self._factors: dict[Transform, np.ndarray] = {}
        try:
            with driver.faults.naming(), driver.device:
                getattr(driver.cupy.cuda, "cufft", None)  # which loads it
                self._library = loaded_library()
        except (OSError, AttributeError) as error:
            self.refused = str(error)

    def workspace(self, made: Transform) -> int | None:
        """The bytes that a transform works in; None where it is left to CuPy.  The first of each
        kind compares one with NumPy's."""
        if made.is_inverse and self.cublas.why_not(made.letter):
            return None
        if not self.refused and made.kind not in self._tried:
            self._tried.add(made.kind)
            with suppress(LibraryRefusedError, MemoryError), self.driver.faults.naming():
                self.driver.with_room(1 << 20, lambda: self._compare(made.kind))
        if self.refused:
            return None
        with suppress(LibraryRefusedError), self._lock, self.driver.device:
            return self._plan(made)[1]
        return None

    def call(self, made: Transform, stream: Any, source: int, result: int, room: int) -> None:
        """Ask a stream for the transforms of an array at an address; ``room``: that of so many
        bytes as `workspace`."""
        way = [] if made.is_real else [_INVERSE if made.is_inverse else _FORWARD]
        with self._lock:
            plan, _ = self._plan(made)
            self._check("cufftSetStream", plan, stream.ptr)
            self._check("cufftSetWorkArea", plan, room)
            self._check(f"cufftExec{made.kind}", plan, source, result, *way)
        if made.is_inverse:
            factor = self._factors.get(made)
            if factor is None:
                real = np.float32 if made.letter == "C" else np.float64
                factor = self._factors[made] = np.array(1 / made.length, real)
            self.cublas.scale(made.letter, made.length * made.batch, factor, stream, result)

    def _plan(self, made: Transform) -> tuple[int, int]:
        key = made.kind, made.length, made.batch
        if key not in self._plans:
            if len(self._plans) >= MOST_PLANS:
                self.refused = f"{MOST_PLANS} plans are kept"
                raise LibraryRefusedError("cuFFT", self)
            handle, size = ctypes.c_int(), ctypes.c_size_t()
            length = ctypes.c_longlong(made.length)
            self._check("cufftCreate", ctypes.addressof(handle))
            self._check("cufftSetAutoAllocation", handle.value, 0)
            self._check("cufftMakePlanMany64", handle.value, 1, ctypes.addressof(length), None, 1,
                        made.length, None, 1, made.results, _TYPES[made.kind], made.batch,
                        ctypes.addressof(size))
            self._plans[key] = handle.value, max(size.value, 1)
        return self._plans[key]

    def _check(self, name: str, *args: Any) -> None:
        status = int(getattr(self._library, name)(*args))
        if status:
            self.refused = f"{name}: {_STATUS.get(status, 'error')} ({status})"
            raise LibraryRefusedError("cuFFT", self)

    def _compare(self, kind: str) -> None:
        """Two small transforms, and back where there is a way back, with NumPy's, on the driver's
        stream."""
        cupy, stream = self.driver.cupy, self.driver.stream
        made = Transform(kind, _LENGTH, 2, False)
        single = made.letter == "C"
        x = np.cos(np.arange(2.0 * _LENGTH) ** 2).reshape(2, _LENGTH)
        given = x if made.is_real else x + 1j * x[::-1]
        want = np.fft.rfft(given) if made.is_real else np.fft.fft(given)
        results = np.dtype(np.complex64 if single else np.complex128)
        source = cupy.asarray(given.astype(results if not made.is_real else (
            np.float32 if single else np.float64)))
        steps = [(made, source, want)]
        for step in steps:
            transform, operand, wanted = step
            out = cupy.ndarray(wanted.shape, results)
            room = cupy.cuda.alloc(self._plan(transform)[1])
            self.call(transform, stream, operand.data.ptr, out.data.ptr, room.ptr)
            if np.abs(out.get() - wanted).max() > (1e-5 if single else 1e-13):
                self.refused = "cuFFT gives another transform than NumPy"
                return
            if len(steps) == 1 and not made.is_real and not self.cublas.why_not(made.letter):
                steps.append((made._replace(is_inverse=True), out, given))
