"""The plan of a compiled graph on one device: where every value lives and what runs in order.

`plan_building` makes plans; the runtime runs them.  Kernels are compiled by the
plan's back end; everything else in a plan is the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node
from fusec.ir.device_names import DeviceName
from fusec.ir.lazy_values import asked_once, lazy
from fusec.ir.sizes.bindings import typical
from fusec.ir.sizes.dims import Size, maximum, symbols_of
from fusec.ops import get
from fusec.passes.pipeline import PassRecord

from ..backend import Backend, DeviceArrays, Strides
from ..structured.calls.call_statements import CallStatement, NodeCall, Return
from ..structured.kernel_statements import NestToRun, RunKernel, nests_to_run
from ..structured.memory import View
from ..structured.statements import Block
from ..structured.text import print_blocks


class AtItsSizes:
    """What is for sizes of its own: none are substituted."""

    def data(self, data: Any) -> Any:
        return data

    def place(self, place: Any) -> Any:
        """A view of memory."""
        return place

    def source(self, source: Any) -> Any:
        """A place or a constant."""
        return source


_ITSELF = AtItsSizes()


class Traffic(NamedTuple):
    """What the kernels of a plan do, as far as their sizes are known: the points of each nest,
    the scalar operations for a point of all of them, the bytes that each reads and writes, the
    scalar operations of each kernel."""

    points: tuple[Size, ...]
    operations: int
    nbytes: tuple[Size, ...]
    work: tuple[Size, ...]


class NativeParts(Protocol):
    """What one native call needs of a plan: words for numbers, memory, results, nests."""

    cells: int
    temps: list[View]
    outputs: list[View | Any]

    def nests_to_run(self) -> Iterable[NestToRun]: ...


@dataclass
class CallPlan:
    """Statements in order: ``head`` declares memory and takes numbers, ``steps`` are kernels,
    library calls, branches and loops; ``outputs`` are views of memory, or constants."""

    is_partitioned: ClassVar[bool] = False  # over several devices

    steps: list[CallStatement]
    temps: list[View]
    cells: int
    outputs: list[View | Any]
    graph: Graph
    backend: Backend
    traced: Graph | None = None  # the program's own order of what may raise, before the passes
    head: list[Any] = field(default_factory=list)
    passes: Sequence[PassRecord] = ()  # that made the graph, where a log of them is kept
    states: Any = None  # what the program has assigned where it may raise
    executable: Any = None  # the class that runs it, where that is not the usual one
    arrays: DeviceArrays | None = None  # of a device's own memory, where its kernels run there
    divide: Divide | None = None  # plans sub-graphs that several devices have a part in

    @property
    def body(self) -> Block:
        """All its statements."""
        return (*self.declared(), *self.steps, Return(tuple(self.outputs)))

    def declared(self) -> list[Any]:
        """The head, for the plan's own sizes."""
        return self.head

    def __str__(self) -> str:
        return "\n".join([f"plan {self.graph.name}:", *print_blocks(self.body, ())])

    @property
    def devices(self) -> Collection[DeviceName]:
        """The devices that share its steps; none where the calling thread does them all."""
        return ()

    @property
    def kernels(self) -> list[RunKernel]:
        return [s for s in self.steps if isinstance(s, RunKernel)]

    def nests_to_run(self) -> Iterable[NestToRun]:
        """The nests of its kernels in order, where machine code is called by address."""
        return nests_to_run(self.kernels, self.backend)

    @property
    def native(self) -> NativeParts:
        """What one native call of it needs."""
        return self

    @property
    def whole(self) -> CallPlan:
        """The plan with all its statements; itself, unless an earlier process made it."""
        return self

    @property
    def externs(self) -> list[NodeCall]:
        return [s for s in self.steps if not isinstance(s, RunKernel)]

    @property
    def pattern(self) -> Graph:
        """The graph, at whichever sizes: for what they do not decide."""
        return self.graph

    @property
    def open(self) -> CallPlan:
        """The same with symbols where it is one of several sizes; else itself."""
        return self

    @property
    def at(self) -> AtItsSizes:
        """What substitutes its sizes in the parts of `open`."""
        return _ITSELF

    @property
    def may_fail(self) -> bool:
        """Whether a kernel may find that an index or a size is wrong."""
        return _may_fail(self.pattern)

    def by_backend(self) -> list[CallPlan]:
        """What each back end compiles."""
        return [self]

    @lazy
    def traffic(self) -> Traffic:
        static = [s for s in self.kernels if all(f.is_static for f in s.forms)]
        moved = (size for s in static for size in (s.kernel.bytes_loaded, s.kernel.bytes_stored))
        return Traffic(
            tuple(f.points for s in self.kernels for f in s.forms if f.is_static),
            sum(s.kernel.operations for s in self.kernels),
            tuple(size for size in moved if isinstance(size, int)),
            tuple(size for s in static if isinstance(size := s.kernel.work, int)))


Divide = Callable[[Graph, Sequence[Strides], Sequence[Strides]], "CallPlan | None"]


def contiguous_strides(shape: Sequence[Size], itemsize: int) -> Strides:
    """Byte strides in C order."""
    strides: list[Size] = [0] * len(shape)
    step: Size = itemsize
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step = step * maximum(shape[axis], 1)
    return tuple(strides)


def packed_strides(strides: Strides, shape: Sequence[Size], itemsize: int) -> Strides:
    """Byte strides without gaps, the axes in the order that they have now: as of copies that NumPy
    makes with ``order="K"``."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(typical(strides[axis])))
    packed = contiguous_strides([shape[axis] for axis in order], itemsize)
    return tuple(packed[order.index(axis)] for axis in range(len(shape)))


def words_of(dtype: np.dtype) -> int:
    """Cells that a scalar takes: two for complex128."""
    return max(1, dtype.itemsize // 8)


def may_fail(node: Node) -> bool:
    """Whether a kernel may find that an index or a size is wrong."""
    return node.op == "Fused" and (bool(sizes_of_extrema(node)) or any(
        get(n.op).may_raise or n.attrs.get("raises")
        for n in node.attrs["body"].nodes))


@asked_once
def _may_fail(graph: Graph) -> bool:
    return any(map(may_fail, graph.nodes))


def sizes_of_extrema(node: Node) -> tuple[Size, ...]:
    """The run-time sizes over which a kernel takes extrema: of no elements NumPy raises."""
    sizes = (
        math.prod(n.inputs[0].shape[axis] for axis in n.attrs["axes"])
        for n in node.attrs["body"].nodes if get(n.op).chooses
    )
    return tuple(dict.fromkeys(size for size in sizes if symbols_of(size)))
