"""cuSOLVER, called directly: CuPy's functions refuse while a graph is captured, and wait for each
matrix to say whether it was fit.

It is the library that the process has loaded for CuPy.  A call is given its stream, the memory that
it works in, and two words in which the library notes what it refuses: they are looked at when all
of a call has been asked for.  NVIDIA does not say which functions may be captured; each is tried in
a graph that is launched with other matrices, and left out of graphs where that differs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from fusec.core import locks

from ..driver.driver import GpuDriver
from ..launches import Filled
from .cublas import library_loaded
from .factorization import Factorization, Kind, Room
from .matrix_copies import MODULE, MatrixCopies
from .refusals import LibraryRefusedError

_STATUS = {1: "not initialised", 2: "allocation failed", 3: "invalid value",
           4: "architecture mismatch", 5: "mapping error", 6: "execution failed",
           7: "internal error", 8: "matrix type not supported", 9: "not supported"}
_INT, _POINTER = ctypes.c_int, ctypes.c_void_p
_PLAIN, _TRANSPOSED, _UPPER = 0, 1, 1  # cublasOperation_t, cublasFillMode_t
_DTYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
_SIZES, _COLUMNS = (5, 70), 3  # of what is compared with NumPy, the second in blocks
_FUNCTIONS: Mapping[Kind, Callable[..., np.ndarray]] = {
    "factor": np.linalg.cholesky, "inverse": np.linalg.inv, "solution": np.linalg.solve}
WORDS = 2  # of 32 bits, of what is refused


def loaded_library() -> Any:
    """The library that this process has loaded for CuPy; raises OSError."""
    library = library_loaded("libcusolver.so")
    matrix: list[Any] = [_POINTER, _INT]
    types: dict[str, list[Any]] = {"Create": [_POINTER], "SetStream": [_POINTER] * 2}
    for letter in _DTYPES:
        types |= {
            f"{letter}potrf_bufferSize": [_POINTER, _INT, _INT, *matrix, _POINTER],
            f"{letter}potrf": [_POINTER, _INT, _INT, *matrix, _POINTER, _INT, _POINTER],
            f"{letter}getrf_bufferSize": [_POINTER, _INT, _INT, *matrix, _POINTER],
            f"{letter}getrf": [_POINTER, _INT, _INT, *matrix, *[_POINTER] * 3],
            f"{letter}getrs": [_POINTER, _INT, _INT, _INT, *matrix, _POINTER, *matrix, _POINTER]}
    for name, of in types.items():
        function = getattr(library, f"cusolverDn{name}")
        function.argtypes, function.restype = of, _INT
    return library


class Cusolver:
    """Equations and factors of one GPU; ``refused`` says why there are none, ``outside`` of what
    why it is launched beside graphs."""

    def __init__(self, driver: GpuDriver) -> None:
        self.driver, self.refused, self.outside = driver, "", dict[tuple[Kind, str], str]()
        self._lock, self._handle = locks.Lock(), _POINTER()
        self._tried: set[tuple[Kind, str]] = set()
        self._works: dict[tuple[str, int], int] = {}  # elements, by routine and size
        try:
            with driver.faults.naming(), driver.device:
                driver.device.cusolver_handle  # noqa: B018  # which loads it
                self._library = loaded_library()
                self._check("Create", ctypes.addressof(self._handle))
                self._copies = MatrixCopies(driver.compile(MODULE).functions)
        except (OSError, AttributeError) as error:
            self.refused = str(error)
        except LibraryRefusedError:
            pass

    def workspace(self, made: Factorization) -> int | None:
        """The bytes that a call works in; None where it is left to CuPy.  The first of each kind
        is compared with NumPy's."""
        if (made.kind, made.letter) not in self._tried and not self.refused:
            try:
                with self.driver.faults.naming(), suppress(LibraryRefusedError):
                    self.driver.with_room(1 << 20, partial(self._try, made.kind, made.letter))
            except MemoryError:
                return None
        if self.refused:
            return None
        with suppress(LibraryRefusedError), self._lock, self.driver.device:
            return self._room(made).end
        return None

    def outside_of(self, made: Factorization) -> str:
        """Why it is no part of graphs; empty where it is."""
        return self.outside.get((made.kind, made.letter), "")

    def call(self, made: Factorization, stream: Any, *where: int) -> None:
        """Ask a stream for it; ``where``: the addresses of the operands, of the result, of the
        memory to work in, and of the words of what is refused."""
        *operands, result, at, refused = where
        if self.outside_of(made) and self.driver.is_capturing(stream):
            self.refused = self.outside_of(made)
            raise LibraryRefusedError("cuSOLVER", self)
        with self._lock:
            self._check("SetStream", self._handle.value, stream.ptr)
            room = self._room(made)
            if made.is_cholesky:
                self._factor(made, stream, operands[0], result, at, refused)
            else:
                self._solve(made, stream, operands, result, at, refused, room)

    def _factor(
        self, made: Factorization, stream: Any, operand: int, result: int, at: int, refused: int
    ) -> None:
        """The lower triangle of rows is the upper one of columns, whose factor is the transposed.
        """
        n, itemsize = made.size, np.dtype(_DTYPES[made.letter]).itemsize
        self._copies.copy(
            stream, itemsize, operand, result, (n, n), made.steps[0], (n, 1), True)
        self._check(f"{made.letter}potrf", self._handle.value, _UPPER, n, result, n, at,
                    self._work(made), refused)

    def _solve(
        self, made: Factorization, stream: Any, operands: list[int], result: int, at: int,
        refused: int, room: Room,
    ) -> None:
        n, dtype = made.size, np.dtype(_DTYPES[made.letter])
        copy = partial(self._copies.copy, stream, dtype.itemsize)
        matrix, pivots, shape = at + room.matrix, at + room.pivots, (n, made.columns)
        copy(operands[0], matrix, (n, n), made.steps[0], (1, n))
        self._check(f"{made.letter}getrf", self._handle.value, n, n, matrix, n, at, pivots,
                    refused)
        side, way = result, _PLAIN
        if made.kind == "inverse":  # by columns its transpose, as rows the inverse itself
            way = _TRANSPOSED
            self._copies.unit(stream, dtype, result, n)
        else:
            side = at + room.side if made.is_turned else result
            copy(operands[1], side, shape, made.steps[1], (1, n))
        self._check(f"{made.letter}getrs", self._handle.value, way, n, made.columns, matrix, n,
                    pivots, side, n, refused + 4)
        if made.is_turned:
            copy(side, result, shape, (1, n), (made.columns, 1))

    def _work(self, made: Factorization) -> int:
        """Elements that the library works in."""
        n, routine = made.size, f"{made.letter}{'potrf' if made.is_cholesky else 'getrf'}"
        if (routine, n) not in self._works:
            found = ctypes.c_int()
            sizes = [_UPPER, n] if made.is_cholesky else [n, n]
            self._check(f"{routine}_bufferSize", self._handle.value, *sizes, None, n,
                        ctypes.addressof(found))
            self._works[routine, n] = found.value
        return self._works[routine, n]

    def _room(self, made: Factorization) -> Room:
        return made.room(self._work(made), np.dtype(_DTYPES[made.letter]).itemsize)

    def _check(self, name: str, *args: Any) -> None:
        status = int(getattr(self._library, f"cusolverDn{name}")(*args))
        if status:
            self.refused = f"cusolverDn{name}: {_STATUS.get(status, 'error')} ({status})"
            raise LibraryRefusedError("cuSOLVER", self)

    def _try(self, kind: Kind, letter: str) -> None:
        """Compare small ones."""
        self._tried.add((kind, letter))
        for size in _SIZES:
            if not self.refused:
                self._compare(kind, letter, size)

    def _compare(self, kind: Kind, letter: str, size: int) -> None:
        """A small matrix, then others in a graph, the last of them one that is refused, with
        NumPy's, on the driver's stream."""
        trial = _Trial(self, kind, letter, size)
        trial.ask()
        if not trial.is_right():
            self.refused = "cuSOLVER gives another result than NumPy"
            return
        if (kind, letter) not in self.outside and (reason := self._differs_in_graph(trial)):
            self.outside[kind, letter] = reason
        trial.give(0)
        trial.ask()
        if not trial.is_refused():
            self.refused = "cuSOLVER does not say which matrices it refuses"

    def _differs_in_graph(self, trial: _Trial) -> str:
        """Why it is no part of graphs; empty where it is."""
        try:
            graph = self.driver.captured([trial.launch])
        except self.driver.faults.kinds as error:
            return f"CUDA refuses it in one: {error}"
        except LibraryRefusedError as error:
            self.refused = ""
            return f"it refuses to be in one: {error}"
        trial.give(2)
        graph.launch(self.driver.stream)
        return "" if trial.is_right() else "its graph gives another result"


class _Trial:
    """A matrix, right-hand sides where it needs them, and what comes of them."""

    def __init__(self, library: Cusolver, kind: Kind, letter: str, size: int) -> None:
        columns = _COLUMNS if kind == "solution" else size
        steps = [(size, 1), *([(columns, 1)] if kind == "solution" else [])]
        self.library, self.driver, cupy = library, library.driver, library.driver.cupy
        self.made = Factorization(kind, letter, size, columns, tuple(steps))
        self.dtype, self.host = np.dtype(_DTYPES[letter]), list[np.ndarray]()
        self.there = [cupy.ndarray((size, step), self.dtype) for step, _ in steps]
        self.out = cupy.ndarray((size, columns), self.dtype)
        self.words = cupy.ndarray((WORDS,), np.int32)
        self.room = cupy.cuda.alloc(library.workspace(self.made) or 1)
        self.give(1)

    def give(self, number: int) -> None:
        """Other operands; with 0 a matrix that is refused."""
        matrix, *sides = (self._numbers(array.shape, number) for array in self.there)
        matrix = matrix @ matrix.T.conj() if self.made.is_cholesky else matrix
        matrix = (matrix + self.made.size * np.eye(self.made.size)) * bool(number)
        self.host = [x.astype(self.dtype) for x in (matrix, *sides)]
        for array, x in zip(self.there, self.host, strict=True):
            array[...] = self.driver.cupy.asarray(x)
        self.words[...] = self.driver.cupy.asarray(np.zeros(WORDS, np.int32))

    def _numbers(self, shape: tuple[int, int], number: int) -> np.ndarray:
        x = np.cos(np.arange(float(np.prod(shape))) ** 2 * (number + 1)).reshape(shape)
        return x + 1j * x[::-1] if self.dtype.kind == "c" else x

    @property
    def launch(self) -> Filled:
        where = (*(x.data.ptr for x in (*self.there, self.out)), self.room.ptr, self.words.data.ptr)
        return Filled(self._ask, (1, 1, 1), (1, 1, 1), where, 0)

    def ask(self) -> None:
        """Launch it."""
        self._ask((), (), self.launch.words, 0, self.driver.stream)

    def _ask(
        self, grid: Any, block: Any, words: tuple[int, ...], shared_mem: int, stream: Any
    ) -> None:
        """As CuPy's functions are called."""
        self.library.call(self.made, stream, *words)

    def is_right(self) -> bool:
        """Whether the result is NumPy's, and nothing was refused."""
        want = _FUNCTIONS[self.made.kind](*self.host)
        near = 1e-4 if self.made.letter in "SC" else 1e-11
        return not self.is_refused() and bool(
            np.abs(self.out.get() - want).max() <= near * np.abs(want).max())

    def is_refused(self) -> bool:
        return bool(self.words.get().any())
