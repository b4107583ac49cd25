"""Calls with Dask's arrays: lazy arrays of the same kind come back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import dask.array
import numpy as np
import optree
from dask._task_spec import DataNode
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from fusec.compiled.tracing_compiler import TracingCompiler
from fusec.core.process.quiet_gc import no_collections_inside
from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir import Value
from fusec.signature.blocks import are_in_blocks
from fusec.signature.unwritten_arrays import unwritten
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.facts.trees import flattened

from .layers import LayerBuilder, whole
from .split_plan import Result, SplitPlan, chunks_of, place_of, plan_of_call
from .split_report import SplitExplanation, check_memory
from .stored import Stored, Tasks


@dataclass(frozen=True)
class SplitCall:
    """A call that was split: its plan, its arrays by parameter, and the tasks."""

    call: FlatCall
    plan: SplitPlan
    arrays: dict[int, Any]
    layers: LayerBuilder
    treespec: Any

    def result(self) -> Any:
        """The call's result, its arrays lazy.

        Raises ``MemoryError`` where the workers of the present client cannot have the blocks.
        """
        check_memory(self.explanation)
        graph = _graph_of(self.layers.tasks, list(self.arrays.values()))
        leaves = [self._leaf(graph, result) for result in self.plan.results]
        return optree.tree_unflatten(self.treespec, leaves)

    @property
    def explanation(self) -> SplitExplanation:
        """Stages, barriers, edges and memory."""
        layers = self.layers
        return SplitExplanation(layers.name, stages=layers.reports, moved_bytes=layers.reads.moved,
                                loops=self.plan.loops)

    def _leaf(self, graph: HighLevelGraph, result: Result) -> Any:
        stages, value = self.plan.stages, result.output
        if value is not None and value in stages.stored:
            return _lazy(graph, self.layers, value)
        if value is None and result.parameter < 0:
            return result.value
        number = result.parameter if value is None else stages.graph.inputs.index(value)
        return self.arrays[number] if number in self.arrays else self.plan.wholes[number]


@no_collections_inside()
def _graph_of(tasks: Tasks, arrays: Sequence[Any]) -> HighLevelGraph:
    """The tasks as Dask's graph, with those of the arrays: a layer for each name."""
    below = HighLevelGraph.merge(*(array.dask for array in arrays))
    layers: dict[str, dict[Any, Any]] = {}
    depends: dict[str, set[str]] = {}
    given = {array.name: array.__dask_layers__() for array in arrays}
    for key, task in tasks.items():
        name = _layer_of(key)
        layers.setdefault(name, {})[key] = task
        needed = depends.setdefault(name, set())
        for other in map(_layer_of, task.dependencies):
            needed.update(given.get(other, (other,)) if other != name else ())
    return HighLevelGraph({**below.layers, **layers}, {**below.dependencies, **depends})


def _layer_of(key: Any) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def _lazy(graph: HighLevelGraph, layers: LayerBuilder, value: Value) -> Any:
    """A stored value as an array of Dask's."""
    stored = layers.stored[value]
    return dask.array.Array(graph, stored.name, stored.chunks, dtype=value.dtype,
                            meta=np.empty((0,) * value.type.rank, value.dtype))


def _check_none_is_static(call: FlatCall, standing: dict[int, Any]) -> None:
    """Raise for a stand-in of which the call holds a copy, as of all static arrays."""
    copied = [array for leaf, array in standing.items() if leaf not in {*map(id, call.leaves)}]
    for array in copied:
        path = next(path for leaf, path in zip(call.leaves, call.paths, strict=True)
                    if isinstance(leaf, np.ndarray) and id(leaf) not in standing
                    and (leaf.shape, leaf.dtype) == (array.shape, array.dtype))
        raise unsupported(f"argument {path}, which is static and an array in blocks,",
                          cure="leave it out of static=")


def split_call(compiler: TracingCompiler, args: tuple, kwargs: dict[str, Any]) -> SplitCall:
    """A call of which some arguments are in blocks.

    Raises ``UnsupportedError`` for what blocks cannot compute, and like any trace.
    """
    args, kwargs, standing = _with_stand_ins(args, kwargs)
    call = compiler.flatten(args, kwargs)
    arrays: dict[int, Any] = {}
    chunks: dict[int, Any] = {}
    _check_none_is_static(call, standing)
    traced = compiler.traced(call)
    for leaf, number, path in zip(call.leaves, traced.positions, call.paths, strict=True):
        array = standing.get(id(leaf))
        if array is not None:
            arrays[number], chunks[number] = array, chunks_of(array, path)
    plan = plan_of_call(traced, call, compiler.options, chunks, place_of(compiler.target.fn))
    layers = _layers(compiler.target.name, plan, arrays)
    return SplitCall(call, plan, arrays, layers, traced.treespec)


def _with_stand_ins(
    args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any], dict[int, Any]]:
    """The arguments with arrays of NumPy's in the place of those in blocks, and these by the
    identity of what stands for them."""
    tree: Any = (args, kwargs)
    leaves, spec = flattened(tree)
    standing = {}
    for position, leaf in enumerate(leaves):
        if are_in_blocks(leaf):
            chunks_of(leaf, f"number {position}")  # before its shape is asked for
            leaves[position] = made = unwritten(tuple(map(int, leaf.shape)), leaf.dtype)
            standing[id(made)] = leaf
    args, kwargs = spec.unflatten(leaves)
    return args, kwargs, standing


@no_collections_inside()  # it makes a task for each block, which all stay
def _layers(name: str, plan: SplitPlan, arrays: dict[int, Any]) -> LayerBuilder:
    """The tasks of a plan."""
    graph, stages = plan.stages.graph, plan.stages
    joins = [(str(v), b.join, b.reduced, b.options, b.node.attrs.get("axes"))
             for v, b in stages.states.barriers.items()]  # of cut nodes: the graph has lost them
    blocks = {n: (a.name, a.chunks) for n, a in arrays.items()}
    token = tokenize(str(graph), repr(joins), blocks, plan.wholes)
    layers = LayerBuilder(name, token, stages, {})
    read = {leaf for family in stages.families for leaf in family.leaves}
    for number, value in enumerate(graph.inputs):
        if value not in read or value in stages.stored:
            continue
        if number in arrays:
            layers.stored[value] = _stored(arrays[number])
        else:
            key = layers.key_name("given", number)
            layers.tasks[key] = DataNode(key, plan.wholes[number])
            layers.stored[value] = whole(key, key, value.shape, value.dtype.itemsize)
    layers.build()
    return layers


def _stored(array: Any) -> Stored:
    """An argument's blocks."""
    bounds = []
    for sizes in array.chunks:
        ends = np.cumsum((0, *map(int, sizes))).tolist()
        bounds.append(tuple(itertools.pairwise(ends)))
    name = array.name
    return Stored(name, tuple(bounds), lambda numbers: (name, *numbers), array.dtype.itemsize)
