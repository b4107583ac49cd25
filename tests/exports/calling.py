"""Exported functions called through ctypes, as C calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.exported.parts import CParameter, ExportedFunction

GUARD, PATTERN = 64, 0xA5  # bytes around each array, which no call may change


class Guarded:
    """Memory of exactly so many bytes, with a pattern around it."""

    def __init__(self, nbytes: int) -> None:
        self.whole = np.full(nbytes + 2 * GUARD, PATTERN, np.uint8)
        self.inside = self.whole[GUARD: GUARD + nbytes]

    @property
    def address(self) -> int:
        return self.inside.ctypes.data

    def is_intact(self) -> bool:
        return bool((self.whole[:GUARD] == PATTERN).all() and (
            self.whole[GUARD + len(self.inside):] == PATTERN).all())


class CFunction:
    """An exported function of a loaded library."""

    def __init__(
        self, library: ctypes.CDLL, function: ExportedFunction, state: Any = None
    ) -> None:
        self.library, self.function = library, function
        self.state = Guarded(function.state_bytes) if state is None else state

    def reset(self, name: str) -> None:
        """The state's first values, of the library of this name."""
        if self.function.state_bytes:
            self.library[f"{name}_reset"](ctypes.c_void_p(self.state.address))

    def sizes_of(self, arguments: Sequence[Any]) -> list[ctypes.c_int64]:
        return [ctypes.c_int64(arguments[k].shape[axis]) for k, axis in self.function.axes]

    def nbytes(self, sizes: Sequence[ctypes.c_int64]) -> tuple[int, list[int], int]:
        """The code, the bytes of each result, and of the workspace."""
        count = len(self.function.results)
        results, workspace = (ctypes.c_size_t * max(count, 1))(), ctypes.c_size_t()
        told = [results] if count else []
        code = self.library[f"{self.function.name}_sizes"](*sizes, *told, ctypes.byref(workspace))
        return code, [*results][:count], workspace.value

    def shapes(self, sizes: Sequence[ctypes.c_int64]) -> list[list[int]]:
        """Those of the results."""
        ranks = [len(p.shape) for p in self.function.results]
        told = (ctypes.c_int64 * max(sum(ranks), 1))()
        if any(ranks):
            assert self.library[f"{self.function.name}_shapes"](*sizes, told) == 0
        numbers = iter(told)
        return [[next(numbers) for _ in range(rank)] for rank in ranks]

    def __call__(self, leaves: Sequence[Any]) -> tuple[int, list[np.ndarray], dict[int, Any]]:
        """The code, the results, and arguments that it writes, by leaf."""
        arguments = [np.array(leaves[k], p.dtype) for k, p in zip(
            self.function.leaves, self.function.arguments, strict=True)]
        sizes = self.sizes_of(arguments)
        code, results, workspace = self.nbytes(sizes)
        if code:
            return code, [], {}
        memory = [Guarded(n) for n in (*(a.nbytes for a in arguments), *results, workspace)]
        for guarded, array in zip(memory, arguments, strict=False):
            guarded.inside[:] = np.frombuffer(array.tobytes(), np.uint8)
        passed = [*sizes]
        for k, parameter in enumerate(self.function.arguments):
            passed += [ctypes.c_void_p(memory[k].address)] if parameter.is_array else (
                number(parameter, arguments[k]))
        passed += [ctypes.c_void_p(m.address) for m in memory[len(arguments): -1]]
        passed += [ctypes.c_void_p(self.state.address)] if self.function.state_bytes else []
        passed += [ctypes.c_void_p(memory[-1].address)]
        code = self.library[self.function.name](*passed, ctypes.c_size_t(workspace))
        assert all(m.is_intact() for m in (*memory, self.state)), "memory beside one was written"
        self.workspace = memory[-1]
        first = len(arguments)
        given = [m.inside.view(p.dtype) for m, p in zip(
            memory[first:], self.function.results, strict=False)]
        given = cut(self.function, given, self.shapes(sizes)) if code == 0 else given
        written = {k: memory[n].inside.view(p.dtype).reshape(arguments[n].shape)
                   for n, (k, p) in enumerate(zip(self.function.leaves, self.function.arguments,
                                                  strict=True)) if p.is_written}
        return code, given, written


def cut(
    function: ExportedFunction, given: Sequence[np.ndarray], shapes: Sequence[Any],
) -> list[np.ndarray]:
    """Results as Python has them: of the size that the data decided."""
    results = []
    for array, shape, parameter in zip(given, shapes, function.results, strict=True):
        key = [slice(None)] * len(shape)
        for axis, number in parameter.counts:
            key[axis] = slice(int(given[number].ravel()[0]))
        if parameter.counted is None:
            results.append(array.reshape(shape)[tuple(key)] if parameter.counts else array)
    return results


def number(parameter: CParameter, value: np.ndarray) -> list[Any]:
    """A number as ctypes passes it."""
    dtype = parameter.dtype
    if dtype.kind == "c":
        part = ctypes.c_double if dtype.itemsize == 16 else ctypes.c_float
        return [part(value.real), part(value.imag)]
    if dtype == np.float16:
        return [ctypes.c_uint16(int(value.view(np.uint16)))]
    return [np.ctypeslib.as_ctypes_type(dtype)(value.item())]
