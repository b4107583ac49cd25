"""The one place where the harness asks the compiler about a compiled function.

``MeasuredBackend`` is everything the harness needs of a compiler; ``FusecBackend`` answers through
fusec's public stages.  Tests put a stand-in in its place.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusec import config
from fusec.dispatch.jit import jit
from fusec.ir import Graph
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import symbols_of
from fusec.ops import get

from ..state import BenchState, state_of
from . import equality

STAGES = ("trace", "passes", "codegen", "llvm")
# Kinds of op that compute nothing: they are free in NumPy too, so fusing them saves nothing.
_PASSIVE = frozenset({"source", "view"})


@dataclass(frozen=True)
class MeasuredTraffic:
    """The traffic of one kernel: streams read and written, and their bytes per call."""

    reads: int
    writes: int
    loaded: int
    stored: int

    @property
    def nbytes(self) -> int:
        return self.loaded + self.stored


class MeasuredBackend(ABC):
    """The harness's interface to a compiler."""

    name = "compiled"

    @abstractmethod
    def is_function(self, f: Any) -> bool:
        """Whether ``f`` is already a compiled function of this compiler."""

    @abstractmethod
    def jit(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """A compiled function with no trace yet."""

    @abstractmethod
    def eager(self, compiled: Any) -> Callable[..., Any]:
        """The Python function behind a compiled one."""

    def state(self, compiled: Any, sets: Sequence[Sequence[Any]]) -> BenchState:
        """The state that calls with these sets of arguments change beside them, as it is now."""
        return BenchState()

    @abstractmethod
    def compile_times(self, compiled: Any, args: Sequence[Any]) -> dict[str, float]:
        """Milliseconds per stage of ``STAGES`` that the trace for ``args`` cost."""

    @abstractmethod
    def traffic(self, compiled: Any, args: Sequence[Any]) -> tuple[MeasuredTraffic, ...]:
        """One entry per kernel of a call."""

    @abstractmethod
    def externs(self, compiled: Any, args: Sequence[Any]) -> tuple[str, ...]:
        """The library calls of a call, by name."""

    def held_up(self, compiled: Any, args: Sequence[Any]) -> tuple[str, ...]:
        """Those of its loops and branches that run in Python, as sentences."""
        return ()

    @abstractmethod
    def operations(self, compiled: Any, args: Sequence[Any]) -> int:
        """How many operations the program traced to, those of loops and branches and library calls
        among them."""

    def native_loops(self, compiled: Any, args: Sequence[Any]) -> int:
        """How many of its loops and branches are compiled functions."""
        return 0

    def products_in_loops(self, compiled: Any, args: Sequence[Any]) -> int:
        """How many products of matrices native loops and branches add up themselves."""
        return 0

    @abstractmethod
    def max_threads(self) -> int:
        """How many threads a call may use."""

    @abstractmethod
    def threads(self, n: int) -> contextlib.AbstractContextManager[None]:
        """Inside the block calls use at most ``n`` threads."""


class FusecBackend(MeasuredBackend):
    """fusec itself."""

    name = "fusec"

    def is_function(self, f: Any) -> bool:
        return hasattr(f, "python_function")

    def jit(self, f: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = jit(f)
        return compiled

    def eager(self, compiled: Any) -> Callable[..., Any]:
        return compiled.python_function

    def state(self, compiled: Any, sets: Sequence[Sequence[Any]]) -> BenchState:
        return state_of([compiled.concrete(*args) for args in sets], sets)

    def compile_times(self, compiled: Any, args: Sequence[Any]) -> dict[str, float]:
        return by_stage(compiled.compile_times(*args))

    def traffic(self, compiled: Any, args: Sequence[Any]) -> tuple[MeasuredTraffic, ...]:
        largest = max((np.size(x) for x in equality.leaves(args)), default=1)
        return tuple(kernel_traffic(k, largest) for k in compiled.concrete(*args).kernels)

    def externs(self, compiled: Any, args: Sequence[Any]) -> tuple[str, ...]:
        return tuple(extern_name(e) for e in compiled.concrete(*args).externs)

    def held_up(self, compiled: Any, args: Sequence[Any]) -> tuple[str, ...]:
        control = compiled.concrete(*args).control
        return tuple(dict.fromkeys(
            f"the {c.name}{f' at {c.loc}' if c.loc else ''}: {c.reason}" for c in control
            if not c.is_native or c.calls))

    def operations(self, compiled: Any, args: Sequence[Any]) -> int:
        return _operations(compiled.concrete(*args).graph)

    def native_loops(self, compiled: Any, args: Sequence[Any]) -> int:
        return sum(control.is_native for control in compiled.concrete(*args).control)

    def products_in_loops(self, compiled: Any, args: Sequence[Any]) -> int:
        concrete = compiled.concrete(*args)
        if not all(c.is_native and not c.calls for c in concrete.control):
            return 0
        return sum(_products(graph) for node in concrete.graph.nodes for graph in node.graphs)

    def max_threads(self) -> int:
        return config.num_threads

    @contextlib.contextmanager
    def threads(self, n: int) -> Iterator[None]:
        with config.override(num_threads=n):
            yield


def _operations(graph: Graph) -> int:
    """Nodes that compute; of a loop or a branch those of its graphs."""
    return sum(sum(map(_operations, node.graphs)) or get(node.op).kind not in _PASSIVE
               for node in graph.nodes)


def by_stage(times: Mapping[str, float]) -> dict[str, float]:
    """Stage times under the names of ``STAGES``; work of compilers counts as ``llvm``.

    Raises ``KeyError`` for a stage that belongs nowhere: a time must not vanish from the sum.
    """
    into = {"parse": "llvm", "optimise": "llvm", "emit": "llvm", "load": "llvm", "lower": "codegen",
            "fuse": "passes", "plan": "codegen", "imports": "trace", "c++": "llvm",
            "nvrtc": "llvm"}
    into |= {stage: stage for stage in STAGES}
    total = dict.fromkeys(STAGES, 0.0)
    for stage, milliseconds in times.items():
        if stage == "total":
            continue
        if stage not in into:
            raise KeyError(f"internal error: compile stage {stage!r} is none of {sorted(into)}")
        total[into[stage]] += milliseconds
    return total


def kernel_traffic(step: Any, largest: int = 1) -> MeasuredTraffic:
    """A kernel's traffic: per buffer where it tells, else its sums as one stream each way.

    Lengths that data decides count as ``largest``, the elements of the largest argument.
    """
    kernel = getattr(step, "kernel", step)
    if not hasattr(kernel, "bytes_of"):
        return traffic(kernel.bytes_loaded, kernel.bytes_stored, largest)
    sides: dict[str, list[int]] = {"in": [], "out": []}
    for i, buffer in enumerate(kernel.buffers):
        sides[buffer.role].append(kernel.bytes_of(i))
    return traffic(sides["in"], sides["out"], largest)


def extern_name(step: Any) -> str:
    """A library call's name: its own, its node's op, or its text."""
    node = getattr(step, "node", None)
    return str(getattr(step, "name", "") or getattr(node, "op", "") or step)


def traffic(loaded: Any, stored: Any, largest: int = 1) -> MeasuredTraffic:
    """Bytes per operand (a mapping, a sequence, or one figure) as a ``MeasuredTraffic``."""
    read, written = _operands(loaded, largest), _operands(stored, largest)
    largest = max([*read, *written], default=0)
    # An operand below an eighth of the largest one, a bias vector say, stays in cache: no stream.
    streams = [sum(8 * b >= largest > 0 for b in side) for side in (read, written)]
    return MeasuredTraffic(streams[0], streams[1], sum(read), sum(written))


def _operands(figure: Any, largest: int) -> list[int]:
    figures = figure.values() if isinstance(figure, Mapping) else (
        figure if isinstance(figure, Sequence) else [figure])
    return [int(resolve(v, dict.fromkeys(symbols_of(v), largest))) for v in figures]


def _products(graph: Graph) -> int:
    """Of matrices, those of loops and branches in it, too."""
    return sum((node.op == "MatMul") + sum(map(_products, node.graphs)) for node in graph.nodes)
