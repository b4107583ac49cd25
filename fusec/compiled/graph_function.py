"""Functions of graphs: compiled by the whole pipeline, without the program they were traced from.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.codegen.plan.call_plan import contiguous_strides
from fusec.codegen.plan.plan_building import compile_plan
from fusec.core import locks
from fusec.errors import overlap_error, unsupported, user_error
from fusec.ir.graph import Graph, Loc, Value
from fusec.ir.regions import overlapping
from fusec.ir.sizes.dims import symbols_of
from fusec.ir.sizes.dynamic_sizes import open_sizes, sizes_of, unbound_sizes
from fusec.ir.types import TensorType
from fusec.ops.calls.host_calls import host_objects
from fusec.ops.graphs.carve import carve
from fusec.passes.defined_memory import defined_memory
from fusec.passes.pipeline import PassRecord
from fusec.placement.placers import optimized, plan_of
from fusec.runtime.call_spec import spec_of
from fusec.runtime.executor import Executable
from fusec.trace.call.placement_settings import Placing, placing_in
from fusec.trace.values.array import TracedArray

from .run_metadata import RunMetadata, RunOptions, Times, run_with
from .stages import pass_options

MOST_SIZES = 64  # of a graph with symbols: combinations that are kept compiled
_SCALARS = (bool, int, float, complex, np.generic)
_PYTHON: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class GraphFunction:
    """A graph as a function of its parameters, by position or by name.

    Arrays must have the dtype and shape of their parameter; numbers are converted if they keep
    their value.  One output is returned as it is, several as a tuple.  Parameters that the graph
    updates are changed.  Nodes run on the devices that the graph names, as those of a jitted
    function; the scope around a call adds nothing.  ``fp`` is that of
    `jit`.  Compiled at the first call, or where parameters
    have sizes ``s0`` at the first call of each combination of sizes, of which the last 64 are kept;
    thread-safe.
    """

    def __init__(self, graph: Graph, fp: str = "contract") -> None:
        _check_runnable(graph)
        self.graph, self._fp = graph, fp
        self.name = graph.name
        self._sized: OrderedDict[tuple[int, ...], GraphFunction] = OrderedDict()
        self._is_open = bool(open_sizes(graph))
        self._executables: dict[Placing | None, Executable] = {}
        self._lock = locks.Lock()
        self._updated = frozenset(i for i, _ in graph.updates)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its parameters, in order: ``x``, ``Square:0``."""
        return tuple(v.node.attrs["path"] for v in self.graph.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The edges that it gives."""
        return tuple(v.name for v in self.graph.outputs)

    @property
    def optimized_graph(self) -> Graph:
        """The graph after the passes, fusion included.

        Raises ``UnsupportedError`` where sizes are symbols: each combination has its own.
        """
        if self._is_open:
            raise unsupported(f"the optimised graph of {self!r}, which differs by size",
                              cure="graph.at_sizes(s0=...).function().optimized_graph")
        return self._compiled().call_plan.graph

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(args, named)

    def run(
        self, *args: Any, options: RunOptions | None = None, **named: Any
    ) -> tuple[Any, RunMetadata]:
        """The result and the report of the run, as ``options`` ask for it; parameters by position
        or ``named``, as in `ConcreteFunction.run`."""
        given = self._bound(args, named)
        function = self._for_sizes_of(given)
        return run_with(options, function._compiled().call_plan,
                        lambda times: function._answer(given, times), self.name)

    def _call(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        given = self._bound(args, named)
        if any(isinstance(arg, TracedArray) for arg in given):
            raise unsupported(
                f"a call of {self!r} in a function that is traced", loc=_loc_of(given),
                cure="call the jitted function that the graph is from, or this one outside")
        return self._for_sizes_of(given)._answer(given, None)

    def _for_sizes_of(self, given: Sequence[Any]) -> GraphFunction:
        """The function of the graph for the sizes of these arguments."""
        if not self._is_open:
            return self
        sizes = sizes_of([v.type for v in self.graph.inputs], [
            _shape(value, arg) for value, arg in zip(self.graph.inputs, given, strict=True)])
        key = tuple(sizes.values())
        with self._lock:
            function = self._sized.get(key)
            if function is None:
                function = self._sized[key] = GraphFunction(self.graph.at_sizes(**sizes), self._fp)
            self._sized.move_to_end(key)
            if len(self._sized) > MOST_SIZES:
                self._sized.popitem(last=False)
            return function

    def _answer(self, given: Sequence[Any], times: Times | None) -> Any:
        leaves = [_fitted(value, arg) for value, arg in zip(self.graph.inputs, given, strict=True)]
        self._check_written(leaves)
        taken = [np.ascontiguousarray(x).reshape(x.shape) if isinstance(x, np.ndarray) else x
                 for x in leaves]
        results = self._compiled().run(taken, times)
        for i in self._updated:
            if taken[i] is not leaves[i]:
                np.copyto(leaves[i], taken[i])
        return results[0] if len(results) == 1 else tuple(results)

    def prepare(self) -> None:
        """Compiles it as its first call would, if its sizes are numbers."""
        if not self._is_open:
            self._compiled()

    def _compiled(self) -> Executable:
        """Compiled for the devices that there are now."""
        placing = placing_in(None)
        with self._lock:
            executable = self._executables.get(placing)
            if executable is None:
                executable = self._executables[placing] = _executable(self.graph, self._fp)
            return executable

    def _bound(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        names = self.inputs
        rest = names[len(args):]
        unknown = [n for n in named if n not in rest]
        missing = [n for n in rest if n not in named]
        if len(args) > len(names) or unknown or missing:
            problems = [*(f"no parameter {n}" for n in unknown), *(f"no {n}" for n in missing)]
            raise user_error(
                TypeError, f"the arguments do not fit {self!r}", None, "give one a parameter",
                values=[("parameters", ", ".join(self._described())),
                        ("given", f"{len(args)} by position" + "".join(f", {n}" for n in named)),
                        *([("problems", "; ".join(problems))] if problems else [])])
        return [*args, *(named[n] for n in rest)]

    def _check_written(self, leaves: Sequence[Any]) -> None:
        """Arrays that are updated can be written, and no other argument lies in their memory."""
        for i in self._updated:
            if not leaves[i].flags.writeable:
                raise user_error(
                    ValueError, f"the graph updates {self.inputs[i]}, which is read-only", None,
                    "pass an array that can be written")
        arrays = [(i, x) for i, x in enumerate(leaves) if isinstance(x, np.ndarray)]
        pair = overlapping(arrays, [(i, leaves[i]) for i in self._updated])
        if pair is not None:
            raise overlap_error(*(self.inputs[i] for i in pair))

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphFunction, (self.graph, self._fp)

    def __deepcopy__(self, memo: Any) -> GraphFunction:
        return self

    def _described(self) -> list[str]:
        return [f"{name}: {v.type}" for name, v in zip(self.inputs, self.graph.inputs, strict=True)]

    def __repr__(self) -> str:
        return (f"<graph function {self.name}({', '.join(self._described())}) -> "
                f"{', '.join(self.outputs)}>")


def _loc_of(given: Sequence[Any]) -> Loc | None:
    """The line of the program that is traced with these arguments."""
    return next((arg.trace.loc for arg in given if isinstance(arg, TracedArray)), None)


def graph_function(
    graph: Graph, inputs: Sequence[str] | None, outputs: Sequence[str] | None, prune: bool
) -> GraphFunction:
    """See `Graph.function`."""
    return GraphFunction(carve(graph, inputs, outputs, prune))


def _executable(graph: Graph, fp: str) -> Executable:
    records: list[PassRecord] = []
    fused, placed = optimized(defined_memory(graph), pass_options(fp, True), records)
    inputs, outputs = (
        [contiguous_strides(v.shape, v.dtype.itemsize) for v in values]
        for values in (fused.inputs, fused.outputs))
    call_plan = plan_of(fused, placed, inputs, outputs, graph)
    call_plan.passes = records
    compile_plan(call_plan, CompileStats())
    kind: type[Executable] = call_plan.executable or Executable
    return kind(call_plan, spec_of(graph))


def _check_runnable(graph: Graph) -> None:
    if host_objects(graph) is not None:
        node = next((n for n in graph.nodes if n.op == "HostCall"), None)
        raise unsupported(
            "a graph with calls of objects of the program that was traced (a random generator, "
            "print) as a function of its own", loc=None if node is None else node.loc,
            cure="fetch what does not need them, with prune=True, or use fusec.random")
    lost = unbound_sizes(graph)
    if lost:
        raise unsupported(f"a function of {graph.name!r} whose parameters do not say the size "
                          f"{lost}", cure="feed a parameter that has it as well")
    for value in graph.inputs:
        if symbols_of(value.type):
            raise unsupported(
                f"a graph whose parameter {value.name} is {value.type}, of a size that only the "
                f"run knows, as a function of its own",
                cure="feed an edge of known size, or give the sizes when it is traced")


def _shape(value: Value, arg: Any) -> tuple[int, ...]:
    """The shape of an argument that has as many axes as its parameter."""
    shape = np.shape(arg)
    if len(shape) != value.type.rank or not isinstance(arg, (np.ndarray, *_SCALARS)):
        raise _misfit(value, arg)
    return shape


def _fitted(value: Value, arg: Any) -> Any:
    """The argument as the parameter's type has it; raises ``TypeError`` where it is not of it."""
    type_ = value.type
    if type_.kind == "array":
        fits = isinstance(arg, np.ndarray) or (not type_.shape and _is_number(arg))
        array = np.asarray(arg) if fits else None
        if array is None or array.shape != type_.shape or not (
                array.dtype == type_.dtype or _keeps(array, arg, type_)):
            raise _misfit(value, arg)
        return array if type(array) is np.ndarray and array.dtype == type_.dtype and (
            array.dtype.isnative) else np.asarray(array, type_.dtype)
    if not _is_number(arg) or not _keeps(np.asarray(arg), arg, type_):
        raise _misfit(value, arg)
    number = type_.dtype.type(arg)
    return _PYTHON[type_.dtype.kind](number) if type_.is_weak else number


def _is_number(arg: Any) -> bool:
    return isinstance(arg, _SCALARS) or (
        isinstance(arg, np.ndarray) and arg.ndim == 0)


def _keeps(array: np.ndarray, arg: Any, type_: TensorType) -> bool:
    """Whether a number keeps its value in the parameter's dtype; arrays are not converted."""
    if array.shape or array.dtype.kind not in "biufc":
        return False
    if array.dtype == type_.dtype:
        return True
    if not np.can_cast(array.dtype, type_.dtype, "same_kind"):
        return False
    if type_.dtype.kind not in "iu":
        return True
    limits = np.iinfo(type_.dtype)
    return bool(limits.min <= int(arg) <= limits.max)


def _misfit(value: Value, arg: Any) -> Exception:
    given = f"{arg.dtype}{list(arg.shape)}" if isinstance(arg, (np.ndarray, np.generic)) else (
        f"{type(arg).__name__} {arg!r}"[:60])
    return user_error(
        TypeError, f"argument {value.node.attrs['path']} does not fit the graph", None,
        "convert it", values=[("expected", value.type), ("given", given)])
