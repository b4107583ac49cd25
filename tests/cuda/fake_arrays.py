"""Arrays as CuPy has them, in the memory of the emulated device; their work is done late.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import optree
from fake_streams import MemoryPointer, Pool

from fusec.codegen.cuda.emulation.driver import EmulatedDriver


class UnownedMemory:
    """CuPy's name for memory that somebody else frees: ``owner`` keeps it."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner = ptr, size, owner


class FakeArray:
    """The part of CuPy's arrays that fusec uses; subclasses have the ``driver`` of one GPU."""

    driver: EmulatedDriver
    pool: Pool

    def __init__(
        self, shape: Sequence[int], dtype: Any, memptr: Any = None, strides: Any = None,
    ) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        dense = np.empty(self.shape, self.dtype)
        self.size, self.strides = dense.size, strides or dense.strides
        self.data = memptr or self.pool.alloc(dense.nbytes)
        self.device = types.SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3,
                "data": (self.data.ptr, False), "strides": self.strides}

    def _seen(self) -> np.ndarray:
        """Its elements, for work that is done when the device comes to it, and which does not keep
        its memory."""
        view: Any = types.SimpleNamespace(__array_interface__=self.__cuda_array_interface__)
        return np.asarray(view)

    def __setitem__(self, where: Any, source: Any) -> None:
        assert where is Ellipsis
        to, of = self._seen(), source._seen() if isinstance(source, FakeArray) else source
        self.pool.streams.current.does(lambda: np.copyto(to, of))

    def part(self, *where: Any) -> Any:
        """A view of it."""
        seen = self._seen()[where]
        return type(self)(seen.shape, seen.dtype, MemoryPointer(
            UnownedMemory(seen.ctypes.data, seen.nbytes, self), 0), seen.strides)

    def __getitem__(self, mask: Any) -> Any:
        """The elements where a mask is true; it waits.  Or a part."""
        if isinstance(mask, slice):
            return as_array(type(self), np.ascontiguousarray(self.get()[mask]))
        self.pool.streams.calls.append("masked")
        return as_array(type(self), self.get()[mask.get()])

    def get(self) -> np.ndarray:
        self.pool.streams.current.synchronize()
        return self._seen().copy()


def arrays_of(pool: Pool) -> type[FakeArray]:
    """The class of arrays of one GPU."""
    return type("ndarray", (FakeArray,), {"driver": pool.driver, "pool": pool})


def as_array(kind: type[FakeArray], x: Any) -> FakeArray:
    """``cupy.asarray``: a copy of NumPy's arrays, the memory itself of others."""
    if isinstance(x, kind):
        return x
    if isinstance(x, np.ndarray):
        made = kind(x.shape, x.dtype)
        if x.size:
            kind.driver.copy_in(made.data.ptr, x, kind.pool.streams.current.ptr)
        return made
    interface = x.__cuda_array_interface__
    memory = UnownedMemory(interface["data"][0], 0, x)
    return kind(interface["shape"], interface["typestr"], MemoryPointer(memory, 0),
                interface.get("strides"))


LATE = ("matmul", "dot", "einsum")


class Functions:
    """Functions of a module of NumPy's on such arrays, of which they give new ones.  Some are done
    late, others wait; none takes NumPy's arrays."""

    def __init__(self, kind: type[FakeArray], module: Any, calls: list[str]) -> None:
        self._kind, self._module, self._calls = kind, module, calls

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._calls.append(f"{self._module.__name__}.{name}")
            if any(isinstance(x, np.ndarray) and x.ndim for x in optree.tree_leaves(args)):
                raise TypeError("Unsupported type <class 'numpy.ndarray'>")
            if name in LATE:
                return self._late(function, args)
            args = optree.tree_map(lambda x: x.get() if isinstance(x, FakeArray) else x, args)
            raises = self._calls[-2:-1] == ["raise"]  # a context of now
            try:
                found = function(*args, **kwargs)
            except np.linalg.LinAlgError:
                if raises:
                    raise
                found = np.full(args[0].shape, np.nan)  # as CuPy has it where nobody asks
            return optree.tree_map(lambda x: as_array(self._kind, np.asarray(x)), found)

        return call

    def _late(self, function: Any, args: Any) -> FakeArray:
        like = optree.tree_map(
            lambda x: np.zeros(x.shape, x.dtype) if isinstance(x, FakeArray) else x, args)
        empty = np.asarray(function(*like))
        made = self._kind(empty.shape, empty.dtype)
        given = optree.tree_map(lambda x: x._seen() if isinstance(x, FakeArray) else x, args)
        to = made._seen()
        self._kind.pool.streams.current.does(lambda: np.copyto(to, function(*given)))
        return made
