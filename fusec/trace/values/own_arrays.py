"""Arrays that plain NumPy makes during a trace: constants until the program writes to them.

``np.arange(n)``, ``np.eye(n)`` and arrays computed from them stay plain arrays, so that Python can
read their elements.  The first write that must be in the graph (of a traced value, at a traced
index, in a branch or loop, or after the array was used in the graph) makes the memory traced: a
`Storage` that starts with the array's content.  From then on every array that shares the memory is
a view of that storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir.graph import new_id

from ..facts.origins import access_path
from ..facts.refusals import check_array
from .array import TracedArray
from .storage import Storage
from .trace import Trace

# Methods that write to their array.
WRITING_METHODS = frozenset({"fill", "sort", "partition", "put", "resize"})


def root_of(x: np.ndarray) -> np.ndarray:
    """The array that owns the memory which ``x`` shows."""
    while type(x.base) is np.ndarray:
        x = x.base
    return x


WHAT = "an array made in the function"


@dataclass
class _Memory:
    """Memory allocated during the trace: its birth, and its storage once it is in the graph."""

    root: np.ndarray
    born: int
    storage: Storage | None = None


class MadeArrays(list[np.ndarray]):
    """Of a trace: arrays that it has made of the program's own, and which its graph reads."""


def array_of(trace: Trace, items: Any, dtype: Any = None) -> np.ndarray:
    """The array of numbers in a list."""
    array = np.asarray(items, dtype)
    trace.part(MadeArrays).append(array)
    return array


class OwnArrays:
    """The memory that plain NumPy allocated while one function was traced."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._memory: dict[int, _Memory] = {}
        self._written: set[int] = set()
        self._foreign: set[int] = set()

    def exclude(self, x: np.ndarray) -> None:
        """``x`` is the caller's memory, although a constant of the trace."""
        self._foreign.add(id(root_of(x)))

    def note(self, x: np.ndarray) -> None:
        """``x`` was made just now."""
        root = root_of(x)
        if id(root) not in self._memory and id(root) not in self._foreign:
            self._memory[id(root)] = _Memory(root, new_id())

    def is_traced(self, x: np.ndarray) -> bool:
        """Whether the memory of ``x`` was written in the graph."""
        return bool(self._written) and id(root_of(x)) in self._written

    def must_trace(self, x: Any) -> bool:
        """Whether a write of plain numbers to ``x`` must be seen in the graph."""
        memory = self._memory.get(id(root_of(x))) if type(x) is np.ndarray else None
        if memory is None:
            return False
        return memory.storage is not None or self.trace.is_older_than_region(memory.born)

    def storage_of(self, x: np.ndarray) -> Storage | None:
        """The storage for the memory of ``x``; None if it is not in the graph."""
        memory = self._memory.get(id(root_of(x)))
        return None if memory is None else memory.storage

    def write_to(self, storage: Storage) -> None:
        """The graph writes to memory that plain NumPy made; raises for arrays of arguments."""
        for key, memory in self._memory.items():
            if memory.storage is storage:
                self._written.add(key)
                return
        raise unsupported(
            "writing into an array that is a static argument or a constant",
            loc=self.trace.loc, cure="copy it before writing: x = np.array(x)")

    def written_now(self) -> tuple[frozenset[int], frozenset[int]]:
        """The state for `restore`: the memory written in the graph, and the memory in it."""
        traced = (key for key, memory in self._memory.items() if memory.storage is not None)
        return frozenset(self._written), frozenset(traced)

    def restore(self, before: tuple[frozenset[int], frozenset[int]]) -> None:
        """Back to the state before an attempt that was given up: arrays that only the attempt put
        into the graph are plain again, and Python can read their elements."""
        written, traced = before
        self._written = set(written)
        for key, memory in self._memory.items():
            if key not in traced:
                memory.storage = None

    def traced(self, x: np.ndarray) -> TracedArray | None:
        """``x`` as a view of its memory's storage; None if the memory is not from this trace, or
        the graph cannot express the view."""
        memory = self._memory.get(id(root_of(x)))
        if memory is None:
            return None
        check_array(x, WHAT, self.trace.loc)
        diagonal = _diagonal(memory.root, x)
        if diagonal is not None:
            return self._storage_view(memory).diagonal(diagonal)
        for base in (memory.root, *self._whole_views(memory.root)):
            viewed = viewing(base, x)
            if viewed is not None:
                return viewed(_reshaped(self._storage_view(memory), base))
        if id(memory.root) in self._written:
            raise unsupported(
                "reading a view of an array made in the function once that array was written",
                loc=self.trace.loc, cure="take the view after the write, or write to a copy")
        self._storage_view(memory)  # so that later writes are in the graph, and x keeps its content
        return None

    def _storage_view(self, memory: _Memory) -> TracedArray:
        if memory.storage is None:
            trace, copied = self.trace, memory.root.copy(order="K")
            trace.feeds.outside[len(trace.feeds.inputs)] = WHAT
            read_only = trace.add_array(copied, access_path(WHAT))
            trace.feeds.captured.append(copied)
            trace.part(MadeArrays).append(copied)
            memory.storage = Storage(read_only.value, memory.root.strides)
            memory.storage.born = memory.born
            memory.storage.is_constant = True
        return TracedArray(self.trace, memory.storage)

    def _whole_views(self, root: np.ndarray) -> list[np.ndarray]:
        """Arrays in C order that show all of the memory in another shape."""
        return [x for x in self.trace.local.arrays.values()
                if x.base is root and x.size == root.size and x.flags.c_contiguous]


def _reshaped(whole: TracedArray, base: np.ndarray) -> TracedArray:
    return whole if whole.shape == base.shape else whole.reshape(base.shape)


def _diagonal(base: np.ndarray, x: np.ndarray) -> int | None:
    """The offset of the diagonal of ``base`` that ``x`` is; None if it is none.

    NumPy's diagonals cannot be written; those of ``einsum`` can, and are none here.
    """
    if x.flags.writeable or (base.ndim, x.ndim) != (2, 1) or x.dtype != base.dtype or (
            x.size < 2 or x.strides[0] != sum(base.strides)):
        return None
    row, column = _position(base, x)
    offset = column - row
    is_whole = 0 in (row, column) and np.diagonal(base, offset).shape == x.shape
    return offset if is_whole else None


def viewing(base: np.ndarray, x: np.ndarray) -> Callable[[TracedArray], Any] | None:
    """A function that takes the view ``x`` of ``base``; None if indexing cannot express it."""
    if x is base:
        return lambda array: array
    if x.dtype != base.dtype or not x.size:
        return None
    if x.size == base.size and x.flags.c_contiguous and base.flags.c_contiguous:
        return lambda array: array.reshape(x.shape)
    key = _index(base, x)
    if key is None:
        return None
    index, axes, shape = key
    return lambda array: array[*index, ...].transpose(axes).reshape(shape)  # a view of one element


def _index(base: np.ndarray, x: np.ndarray) -> tuple[Any, tuple[int, ...], tuple[int, ...]] | None:
    """A key into ``base``, and the order of axes and the shape that then give ``x``."""
    starts = _position(base, x)
    axes = [d for d, size in enumerate(x.shape) if size > 1]
    entries: list[Any] = list(starts)
    sources: list[int] = []
    for d in axes:
        source = _source_axis(base, x.strides[d], x.shape[d], starts, sources)
        if source is None:
            return None
        axis, step = source
        sources.append(axis)
        last = starts[axis] + step * (x.shape[d] - 1)
        stop = last + (1 if step > 0 else -1)
        entries[axis] = slice(starts[axis], None if stop < 0 else stop, step)
    order = sorted(sources)
    return tuple(entries), tuple(order.index(axis) for axis in sources), x.shape


def _position(base: np.ndarray, x: np.ndarray) -> list[int]:
    """The indices in ``base`` of the first element of ``x``."""
    rest = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    starts = [0] * base.ndim
    for axis in sorted(range(base.ndim), key=lambda a: -base.strides[a]):
        if base.shape[axis] > 1:
            starts[axis], rest = divmod(rest, base.strides[axis])
    return starts


def _source_axis(
    base: np.ndarray, stride: int, size: int, starts: list[int], used: list[int]
) -> tuple[int, int] | None:
    """The axis of ``base`` along which a stride moves, and its step."""
    for axis in sorted(range(base.ndim), key=lambda a: -base.strides[a]):
        base_stride = base.strides[axis]
        if axis in used or base.shape[axis] < 2 or stride % base_stride:
            continue
        step = stride // base_stride
        if step and 0 <= starts[axis] + step * (size - 1) < base.shape[axis]:
            return axis, step
    return None
