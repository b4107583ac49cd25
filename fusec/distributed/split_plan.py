"""From a call with arrays in blocks to its stages: traced once, split, nothing computed."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.errors import unsupported, user_error
from fusec.ir import Graph, Loc, Value
from fusec.ir.device_names import JOB, DeviceName
from fusec.ops import Builder, Namer
from fusec.ops.calls.checks import has_effects
from fusec.ops.graphs.evaluate import evaluate
from fusec.passes.cse import cse
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import contracted, splittable
from fusec.passes.prune import prune
from fusec.passes.split.cuts import cut_moments
from fusec.passes.split.loops.fences import without_fences
from fusec.passes.split.loops.iterations import expanded
from fusec.passes.split.scan_cuts import cut_scans
from fusec.passes.split.split_states import Chunks
from fusec.passes.split.stages import Stages, stages_of
from fusec.passes.split.states import states_of
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.tracer import Traced

from .counters import constants_of, with_counters


@dataclass(frozen=True)
class Result:
    """A leaf of the call's result: an output of the stages, an argument as it is, or an object."""

    output: Value | None = None
    parameter: int = -1
    value: Any = None


@dataclass(frozen=True)
class SplitPlan:
    """The stages of a call; ``wholes``: the parameters that are not in blocks, with their values.
    """

    stages: Stages
    results: tuple[Result, ...]
    wholes: Mapping[int, Any]
    loops: Sequence[str] = ()  # what became of branches and loops, a line each


@dataclass(frozen=True)
class StagedCall:
    """The stages of a graph; ``numbers``: of the parameters that it got, by number; ``loops``: see
    `SplitPlan`."""

    stages: Stages
    numbers: Mapping[int, Any]
    loops: Sequence[str]


def plan_of_call(
    traced: Traced, call: FlatCall, options: PassOptions, chunks: Chunks, loc: Loc | None = None
) -> SplitPlan:
    """The plan; ``chunks``: of the parameters in blocks, by number; ``loc``: of the function.

    Raises ``UnsupportedError``, with the user's line, for what blocks cannot compute.
    """
    graph: Graph = traced.graph.made
    check_pure(traced, graph, "in a call with arrays in blocks", loc=loc)
    _check_devices(graph)
    graph, numbers = with_views(graph, traced, loc)
    first = len(graph.inputs) - len(traced.captured)
    graph = with_counters(graph, constants_of(traced, first))
    wholes = {first + k: value for k, value in enumerate(traced.captured_now())}
    for leaf, number in zip(call.leaves, traced.positions, strict=True):
        if number >= 0 and number not in chunks:
            wholes[number] = np.array(leaf) if isinstance(leaf, np.ndarray) else leaf
    made = staged(graph, chunks, options, wholes)
    graph = made.stages.graph
    wholes.update(made.numbers)
    _run_checks(graph, wholes)
    results = tuple(
        Result(output=graph.outputs[n]) if n is not None else
        Result(parameter=o.index) if o.kind == "input" else Result(value=o.value)
        for n, o in zip(numbers, traced.outputs, strict=True))
    return SplitPlan(made.stages, results, wholes, made.loops)


def staged(
    graph: Graph, chunks: Chunks, options: PassOptions, wholes: Mapping[int, Any]
) -> StagedCall:
    """The stages of a graph's outputs; ``wholes``: the parameters that are known.  Its variances
    over blocks, and what scans have of blocks before, are made parameters, after those that it has.
    """
    made = expanded(splittable(graph, options), chunks, wholes)
    graph, fences = made.graph, len(made.graph.outputs) - made.outputs
    graph, scans = cut_scans(graph, states_of(graph, chunks))
    states = states_of(graph, chunks, scans)
    graph, moments = cut_moments(graph, lambda node: node.out() in states.barriers)
    cuts = [*scans, *moments]
    graph = contracted(graph, options)
    if fences:
        graph = prune(cse(without_fences(graph, made.outputs, fences)))
        cuts = [replace(cut, output=cut.output - fences) for cut in cuts]
    states = states_of(graph, chunks, cuts)
    stages = stages_of(graph, states, graph.outputs[:made.outputs])
    return StagedCall(stages, made.numbers, made.loops)


def _run_checks(graph: Graph, wholes: Mapping[int, Any]) -> None:
    """Make checks of values that all blocks share, which no block's task makes.

    Raises ``UnsupportedError`` for one of what blocks come to, which nobody would make; a branch or
    loop that holds checks makes them where it runs.
    """
    given = [v for number, v in enumerate(graph.inputs) if number in wholes]
    known, checks = set(given), []
    for node in graph.nodes:
        if node.op != "Input" and all(v in known for v in node.inputs):
            known.update(node.outputs)
            checks += [node] if has_effects(node) else []
        elif has_effects(node) and not node.graphs:
            raise unsupported("a check of values in blocks", loc=node.loc,
                              cure="check them after the call")
    if checks:
        evaluate(Graph.build(given, [], name=graph.name, extra=checks),
                 [wholes[number] for number in sorted(wholes)])


def place_of(fn: Any) -> Loc | None:
    """Where a function is defined: the line of what has none, a result that is a view."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    return None if code is None else Loc(
        code.co_filename, code.co_firstlineno, function=code.co_name)


def with_views(
    graph: Graph, traced: Traced, loc: Loc | None
) -> tuple[Graph, list[int | None]]:
    """The graph with the views that results are of its outputs as nodes, and the number of each
    result's output; None for arguments as they are, and objects."""
    builder = Builder(Namer(node.name for node in graph.nodes), loc)
    outputs: list[Value] = []
    numbers: list[int | None] = []
    for leaf in traced.outputs:
        steps = [step for step in leaf.steps if step.op not in ("Itself", "ReadOnly")]
        if leaf.kind not in ("graph", "input") or (leaf.kind == "input" and not steps):
            numbers.append(None)
            continue
        value = graph.outputs[leaf.index] if leaf.kind == "graph" else graph.inputs[leaf.index]
        for step in steps:
            value = step.apply(builder, value)
        numbers.append(len(outputs))
        outputs.append(value)
    effects = [node for node in graph.nodes if has_effects(node)]
    return Graph.build(graph.inputs, outputs, name=graph.name, extra=effects), numbers


def check_pure(
    traced: Traced, graph: Graph, where: str, variables: Container[int] = (),
    loc: Loc | None = None,
) -> None:
    """Blocks are computed elsewhere, later, and perhaps again: what changes anything else is
    refused, but for ``variables``, which are inputs that ``where`` assigns.  ``loc``: of the
    function."""
    for number, value in graph.updates:
        if number in variables:
            continue
        path = graph.inputs[number].node.attrs.get("path", "")
        raise unsupported(
            f"writing to {path or 'an array'} {where}", loc=value.node.loc,
            cure="compute a new array, and return it")
    if traced.assignments:
        place, _ = traced.assignments[0]
        raise unsupported(f"assigning to attributes or outer variables ({place}) {where}",
                          loc=loc, cure="return the values")
    if traced.calls_host:
        node = next((n for n in graph.nodes if n.op == "HostCall"), None)
        raise unsupported(
            f"drawing from np.random, or printing, {where}",
            loc=None if node is None else node.loc,
            cure="draw with fusec.random, whose numbers do not depend on the blocks")
    for node in graph.nodes:
        if not all(t.is_static for t in node.types):
            raise unsupported(
                f"a size that only the run knows ({node.types[0]}) {where}",
                loc=node.loc, cure="keep the size with np.where, or compute that part outside")


def _check_devices(graph: Graph) -> None:
    """Raise ``UnsupportedError`` for a device other than a CPU of whoever runs the tasks."""
    for node in graph.nodes:
        name = DeviceName.parse(node.device)
        if name.type not in (None, "CPU") or name.index or name.job not in (None, JOB):
            raise unsupported(
                f"a scope of {node.device} in a call with arrays in blocks", loc=node.loc,
                cure="leave it out: Dask's scheduler says where blocks are computed, on CPUs")
        for inner in node.graphs:
            _check_devices(inner)


def chunks_of(array: Any, path: str) -> Sequence[Sequence[int] | None]:
    """The lengths of an array's blocks along each axis; None along axes of one block.

    Raises ``ValueError`` for lengths that are not known, ``TypeError`` for blocks that are no plain
    arrays of NumPy's (masked ones, say).
    """
    if type(array._meta) is not np.ndarray:
        raise user_error(
            TypeError, f"argument {path} has blocks of {type(array._meta).__name__}, which have "
            "rules of their own", None, "use x.map_blocks(np.ma.filled, ...), or blocks of "
            "np.ndarray")
    for axis, sizes in enumerate(array.chunks):
        if any(np.isnan(size) for size in sizes):
            raise user_error(
                ValueError, f"argument {path} has blocks of unknown length along axis {axis}", None,
                "x.compute_chunk_sizes() computes them")
    return [tuple(map(int, sizes)) if len(sizes) > 1 else None for sizes in array.chunks]
