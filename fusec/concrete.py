"""A function compiled for one signature: its graph, kernels and plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import optree

from fusec.codegen.compiled import CompileStats, NativeNest
from fusec.codegen.loop_ir import LEAVES, walk
from fusec.codegen.schedule import ExternStep, KernelStep, Schedule
from fusec.ir import Graph, Loc, dtype_name
from fusec.ir.dims import Dim
from fusec.ops import get
from fusec.ops.checks import CHECKS
from fusec.ops.host_calls import called_on_host
from fusec.ops.library import LIBRARY, called_name
from fusec.ops.windows import UNLIMITED
from fusec.passes.pipeline import PassRecord
from fusec.runtime.executor import CallSpec, Executable, LeafSpec, ResultSpec
from fusec.trace.call.overlap import merged
from fusec.trace.call.signature import FlatCall, describe_part, explain_miss
from fusec.trace.facts.trees import flattened
from fusec.trace.guards.asked import CodeGuard
from fusec.trace.guards.guard import OnceGuard, check_of

from .errors import user_error
from .inspect.explain import Operand
from .trace.tracer import Traced


@dataclass(frozen=True)
class RunOptions:
    """Options of `ConcreteFunction.run`: ``trace`` asks for the time of every step."""

    trace: bool = False


@dataclass
class RunMetadata:
    """What a run reported: total microseconds, and with ``trace`` (step, microseconds) pairs."""

    total_us: float = 0.0
    steps: list[tuple[str, float]] = field(default_factory=list)


class CompiledKernel:
    """One kernel of a compiled function, for people and tests."""

    def __init__(self, step: KernelStep) -> None:
        self.step = step
        self.kernel = step.kernel

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def lines(self) -> tuple[Loc, ...]:
        """The user's lines this kernel computes."""
        return self.kernel.locs

    @property
    def ops(self) -> int:
        """Scalar operations per element."""
        return self.kernel.operations

    @property
    def bytes_loaded(self) -> dict[str, int]:
        """Bytes read from each operand, every element counted once (row passes stay in cache)."""
        return self._bytes("in")

    @property
    def bytes_stored(self) -> dict[str, int]:
        """Bytes written to each operand."""
        return self._bytes("out")

    def _bytes(self, role: str) -> dict[str, int]:
        return {
            b.value: self.kernel.bytes_of(i) for i, b in enumerate(self.kernel.buffers)
            if b.role == role
        }

    @property
    def operands(self) -> list[Operand]:
        return [
            Operand(b.value, f"{dtype_name(b.dtype)}[{','.join(map(str, b.shape))}]",
                    self.kernel.bytes_of(i), b.role)
            for i, b in enumerate(self.kernel.buffers)
        ]

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Why this kernel was not merged with those it reads from."""
        return self.step.boundaries

    @property
    def source(self) -> str:
        """The same loops as readable Python that Numba compiles."""
        from fusec.codegen.python_source import kernel_source

        return kernel_source(self.kernel)

    @property
    def loops(self) -> str:
        """The loop IR as text."""
        return str(self.kernel)

    @property
    def asm(self) -> dict[str, str]:
        """``ll``: LLVM IR as emitted, ``opt``: after LLVM's optimiser, ``asm``: machine code."""
        if not self.step.code:
            raise AttributeError(f"{self.name} is lowered but not compiled: call .compile() first")
        if not all(isinstance(n, NativeNest) for n in self.step.code):
            raise AttributeError(f"{self.name} is run by a back end that makes no machine code")
        codes = {id(n.code): n.code for n in self.step.code}.values()
        return {
            "ll": "\n".join(c.source for c in codes),
            "opt": "\n".join(c.llvm_ir for c in codes),
            "asm": "\n".join(c.assembly for c in codes),
        }

    @property
    def mode(self) -> str:
        """How its nests run: ``map``, ``row``, ``column`` or ``flat``."""
        return "+".join(dict.fromkeys(f.mode for f in self.step.forms))

    def __repr__(self) -> str:
        count = sum(1 for n in self.kernel.nests for e in walk(n.roots) if e.op not in LEAVES)
        return f"<kernel {self.name}: {count} operations, {len(self.kernel.nests)} nests>"


_CALLED = {
    "MatMul": "np.matmul", "Size": "len", "Fill": "np.full", "Concat": "np.concatenate",
    "SliceUpdate": "x[...] = ...", "Pick": "x[...]", "PickUpdate": "x[...] = ...",
    "Window": "x[...]", "WindowUpdate": "x[...] = ...", "Extent": "slice",
    "Counters": "np.zeros",
}


class CompiledExtern:
    """One library call of a compiled function."""

    def __init__(self, step: ExternStep) -> None:
        self.step = step

    @property
    def name(self) -> str:
        node = self.step.node
        if node.op == "HostCall":
            return called_on_host(node.attrs)
        if node.op == "NumPy":
            ufunc = get(node.attrs["of"]).ufunc
            return f"np.{ufunc.__name__ if ufunc else node.attrs['of'].lower()}"
        if node.op in LIBRARY:
            return called_name(node.op, node.attrs["form"])
        if self._is_size:
            return "size"
        return _CALLED.get(node.op, f"np.{node.op.lower()}")

    @property
    def _is_size(self) -> bool:
        """Whether it makes a size of an integer, where others slice an array."""
        node = self.step.node
        return node.op == "Extent" and not isinstance(node.attrs["limit"], Dim) and (
            node.attrs["limit"] >= UNLIMITED)

    @property
    def loc(self) -> Loc | None:
        return self.step.node.loc

    @property
    def reason(self) -> str:
        if self._is_size:
            return "an integer of data is the length of an array, or a step"
        if self.step.node.op in ("Pick", "PickUpdate", "Window", "WindowUpdate", "Extent"):
            return "an element or part at a run-time index, outside any loop"
        if self.step.node.op == "HostCall":
            return "called in program order, with the arrays and numbers of the run"
        if self.step.node.op == "Reshape":
            return "the memory order changes, so the array is copied"
        if self.step.node.op == "NumPy":
            return "complex numbers: NumPy computes it"
        if self.step.node.op in LIBRARY:
            return "NumPy's own library code computes it"
        if self.step.node.op == "MatMul":
            return "matrix products go to BLAS"
        return "a size here is only known when the code runs"

    def __repr__(self) -> str:
        return f"<library call {self.name}>"


class CompiledControl:
    """A branch or loop of a compiled function."""

    def __init__(self, step: ExternStep) -> None:
        assert step.control is not None
        self.step, self.run = step, step.control

    @property
    def name(self) -> str:
        return "loop" if self.step.node.op == "Loop" else "branch"

    @property
    def loc(self) -> Loc | None:
        return self.step.node.loc

    @property
    def is_native(self) -> bool:
        """Whether it runs as one compiled function."""
        return self.run.is_native

    @property
    def reason(self) -> str:
        """How it runs, and why not natively."""
        if self.run.is_native:
            count = self.run.nests
            made = "one native function" + (f" with {count} fused nests" if count else "")
            return made + (f", which calls Python: {', '.join(self.run.calls)}"
                           if self.run.calls else "")
        return f"step by step from Python: {self.run.reason}"

    @property
    def asm(self) -> dict[str, str]:
        """``ll``, ``opt`` and ``asm`` of the native function; empty where there is none."""
        code = self.run.code
        return {} if code is None else {
            "ll": code.source, "opt": code.llvm_ir, "asm": code.assembly}

    def __repr__(self) -> str:
        return f"<{self.name}: {self.reason}>"


def library_steps(schedule: Schedule) -> list[CompiledExtern]:
    """The library calls among the steps."""
    return [CompiledExtern(s) for s in schedule.externs
            if s.control is None and s.node.op not in CHECKS]


def control_steps(schedule: Schedule) -> list[CompiledControl]:
    """The branches and loops among the steps."""
    return [CompiledControl(s) for s in schedule.externs if s.control is not None]


@dataclass
class Build:
    """Everything the stages produced for one signature."""

    name: str
    call: FlatCall
    traced: Traced
    optimized: Graph
    fused: Graph
    records: list[PassRecord]
    schedule: Schedule
    stats: CompileStats
    times: dict[str, float]


class ConcreteFunction:
    """A traced and compiled function for one signature.

    ``graph`` is as traced, ``optimized_graph`` after the passes, fusion included.
    """

    def __init__(self, build: Build) -> None:
        self.build = build
        self.name = build.name
        self.executable = Executable(build.schedule, _call_spec(build))
        build.call = replace(build.call, leaves=())  # the first call's arrays are not ours to keep
        self.result_treespec = build.traced.treespec
        self._leaf_result = build.traced.treespec.is_leaf()
        self._assignments = build.traced.assignments
        self.guards = build.traced.guards
        # Those that the launcher does not check itself.
        watched = [g for g in self.guards if not g.is_native]
        self.unchanged = check_of(watched) if watched else None
        # No other call can use it: the trace changed containers that outlive it.
        self.is_for_once = any(isinstance(g, OnceGuard) for g in self.guards)
        self.hits = 0
        self.reason = ""  # why it was traced
        self.flatten: Callable[[tuple, dict[str, Any]], FlatCall] | None = None

    # -- what it is

    @property
    def graph(self) -> Graph:
        return self.build.traced.graph

    @property
    def optimized_graph(self) -> Graph:
        return self.build.fused

    @property
    def passes(self) -> list[PassRecord]:
        """The pass log: name, ms, rewrites, before, after."""
        return self.build.records

    @property
    def kernels(self) -> list[CompiledKernel]:
        return [CompiledKernel(s) for s in self.build.schedule.kernels]

    @property
    def externs(self) -> list[CompiledExtern]:
        return library_steps(self.build.schedule)

    @property
    def control(self) -> list[CompiledControl]:
        """The branches and loops that data decides."""
        return control_steps(self.build.schedule)

    @property
    def variables(self) -> tuple[Any, ...]:
        """Variables it reads or writes (none yet: state comes with a later release)."""
        return ()

    @property
    def times(self) -> dict[str, float]:
        """Milliseconds per stage: ``trace``, ``passes``, ``codegen``, ``llvm``, ``plan``.

        The trace that loaded the compiler into the process says how long that took: ``imports``.
        """
        return {**self.build.times, "plan": self.executable.made_ms}

    @property
    def signature(self) -> str:
        parts = zip(self.build.call.paths, self.build.call.key[1:], strict=True)
        return f"{self.name}({', '.join(f'{p}: {describe_part(k)}' for p, k in parts)})"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.signature}>"

    def as_text(self) -> str:
        """The whole story: passes with diffs, kernels, library calls."""
        from .explanation import explanation_of

        return str(explanation_of(self))

    # -- running it

    def guards_hold(self) -> bool:
        """Whether Python values read while tracing still are what they were."""
        return all(g.holds() for g in self.guards)

    def call_of(self, args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        """The leaves of these arguments; overlapping arrays as their memory, if that was traced.

        Raises ``TypeError`` for a function compiled from stages.
        """
        if self.flatten is None:
            raise TypeError(f"{self!r} was compiled from stages and belongs to no function: call "
                            f"run_leaves with its argument leaves")
        call: FlatCall = self.flatten(args, kwargs)
        return call if self.build.call.separate is None else merged(call) or call

    def run_leaves(self, leaves: Sequence[Any], report: RunMetadata | None = None) -> Any:
        """Result for argument leaves that match the signature; times of steps go to ``report``."""
        results = self.executable.run(leaves, None if report is None else report.steps)
        if self._assignments:
            self._assign(results)
        if self._leaf_result:
            return results[0]
        return optree.tree_unflatten(self.result_treespec, results)

    def shaped(self, fast: Callable[..., Any]) -> Callable[..., Any]:
        """The native call, which gives a leaf or a tuple of them, with results as they were
        returned and assignments done; what says that it does not answer is no tuple."""
        tree = self.result_treespec
        if self._assignments:
            return self._assigning(fast)
        if tree.is_leaf() or _is_flat_tuple(tree):
            return fast

        def call(*leaves: Any) -> Any:
            results = fast(*leaves)
            return tree.unflatten(results) if type(results) is tuple else results

        return call

    def _assigning(self, fast: Callable[..., Any]) -> Callable[..., Any]:
        tree = self.result_treespec

        def call(*leaves: Any) -> Any:
            answer = fast(*leaves)
            if type(answer) is not tuple:
                return answer
            results = list(answer)
            self._assign(results)
            return tree.unflatten(results)

        return call

    def _assign(self, results: list[Any]) -> None:
        """Do the program's assignments to attributes; leaves only the result's own leaves."""
        at = self.result_treespec.num_leaves
        for assignment, tree in self._assignments:
            assignment.apply(tree.unflatten(results[at: at + tree.num_leaves]))
            at += tree.num_leaves
        del results[self.result_treespec.num_leaves:]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)[0]

    def run(
        self, *args: Any, options: RunOptions | None = None, **kwargs: Any
    ) -> tuple[Any, RunMetadata]:
        """The result and what the run reported; arguments must have this signature.

        Raises ``TypeError`` when they do not.
        """
        call = self.call_of(args, kwargs)
        if call.key != self.build.call.key:
            raise user_error(
                TypeError, f"the arguments do not fit {self.signature}", None,
                "call the jitted function itself: it traces new signatures",
                values=[("difference", explain_miss(call.paths, self.build.call.key, call.key))],
            )
        metadata = RunMetadata()
        wanted = metadata if options is not None and options.trace else None
        start = time.perf_counter()
        result = self.run_leaves(call.leaves, wanted)
        metadata.total_us = 1e6 * (time.perf_counter() - start)
        return result, metadata


def _call_spec(build: Build) -> CallSpec:
    traced, call = build.traced, build.call
    leaves = []
    for position, (leaf, index) in enumerate(zip(call.leaves, traced.positions, strict=True)):
        alias = -1
        if index >= 0 and isinstance(leaf, np.ndarray) and leaf.size:
            first = call.key[position + 1][4]
            alias = first if first != position else -1
        leaves.append(LeafSpec(index, leaf if index < 0 else None, alias))
    results = tuple(
        ResultSpec(o.kind, o.index, o.views(), o.value)
        for o in traced.outputs
    )
    return CallSpec(
        build.name, tuple(leaves), call.paths, tuple(v.type for v in traced.graph.inputs),
        tuple(traced.input_strides), tuple(v.type for v in traced.graph.outputs),
        tuple(traced.captured), results, tuple(traced.updates),
        bare=traced.treespec.is_leaf() and not traced.assignments, calls_host=traced.calls_host,
        read_only=frozenset(traced.read_only),
        code=tuple((g.function(), g.code) for g in traced.guards
                   if isinstance(g, CodeGuard) and g.is_native),
    )


def _is_flat_tuple(tree: Any) -> bool:
    leaves: Any = (0,) * tree.num_leaves
    return not tree.is_leaf() and bool(
        tree == flattened(leaves)[1])
