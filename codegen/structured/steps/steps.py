"""Goes through the nodes of a sub-graph, and those in its loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import is_static, symbols_of
from fusec.ir.sizes.symbolic_numbers import applied
from fusec.ops import get
from fusec.ops.regions.loop_numbers import WAY_BACK

from ..builder import Builder
from ..loops import counting, invariant_checks
from ..loops.counted import Counted, iteration_cost
from ..loops.entries import Entries, find_entries
from ..loops.graph_builder import GraphBuilder
from ..memory import I64, Location, Memory, Operand, Variable, View
from ..statements import Block, CountedLoop, Exchange, If, LaneRange, Poll, While
from . import callbacks, functions, kernels, picks, selections, slices
from .views import viewed

Home = Variable | View  # where a carried value, or a branch's result, lives


def build(graph: GraphBuilder) -> None:
    """Add the statements of every node."""
    shared = graph.builder.shared
    around = shared.node
    for position, node in enumerate(graph.nodes):
        graph.position, shared.node = position, node
        step = _STEPS.get(node.op)
        if step is not None:
            step(graph, node)
        elif get(node.op).kind == "view":
            source = node.inputs[0]
            location = graph.array(source) if node.types[0].shape else graph.location(source)
            graph.env[node.out()] = viewed(graph.builder, node, location)
        else:
            callbacks.library_call(graph, node)
    shared.node = around


# ------------------------------------------------------------------------------------------- loops


def _loop(graph: GraphBuilder, node: Node) -> None:
    carried, outputs = node.attrs["carried"], node.outputs
    homes = [_home(graph, value) for value in node.inputs[:carried]]
    others = [graph.location(v) for v in node.inputs[carried:]]
    node = _with_checks_before(graph, node, homes, others)
    counted = Counted.of(node)
    if counted is None:
        _loop_of_any_kind(graph, node, homes, others)
    else:
        _counted_loop(graph, node, counted, homes, others)
    for value, home in zip(outputs, homes, strict=True):
        graph.env[value] = _present(graph.builder, home)


def _with_checks_before(
    graph: GraphBuilder, node: Node, homes: Sequence[Home], others: Sequence[Location]
) -> Node:
    """The loop without its `invariant_checks`, which are made now."""
    checks = invariant_checks.invariant_checks(node)
    if not checks:
        return node
    builder, body = graph.builder, node.attrs["body"]
    operands = [*(_present(builder, home) for home in homes), *others]
    runs = _numbers(builder, node.attrs["test"], operands)
    held = _numbers(builder, invariant_checks.conditions(body, checks), operands)
    invariant_checks.make(builder, checks, held, runs[0])
    attrs = {**node.attrs, "body": invariant_checks.without(body, checks)}
    return node.with_(attrs=attrs)


def _numbers(builder: Builder, graph: Graph, operands: Sequence[Location]) -> list[Operand]:
    """The outputs of a graph of numbers."""
    inner = GraphBuilder.of(builder, graph, operands)
    build(inner)
    return [inner.scalar(v) for v in inner.graph.outputs]


def _counted_loop(
    graph: GraphBuilder, node: Node, counted: Counted, homes: Sequence[Home],
    others: Sequence[Location],
) -> None:
    builder, variable = graph.builder, homes[counted.number]
    assert isinstance(variable, Variable)
    limit = _limit(graph, node, counted)
    with builder.block() as body:
        now = [_present(builder, home) for home in homes]
        _iteration(graph, node, homes, [*now, *others], range(len(homes)))
    builder.add(CountedLoop(variable, limit, iteration_cost(node), tuple(body),
                            bool(node.attrs.get("lanes"))))


def _limit(graph: GraphBuilder, node: Node, counted: Counted) -> Operand:
    value = counted.limit
    if value.node.op == "Const":
        return graph.builder.constant(I64, value.node.attrs["value"])
    return graph.scalar(node.inputs[node.attrs["test"].inputs.index(value)])


def _loop_of_any_kind(
    graph: GraphBuilder, node: Node, homes: Sequence[Home], others: Sequence[Location]
) -> None:
    builder = graph.builder
    lanes = _lane_range(graph, node, homes)
    with builder.block() as first:
        now = [_present(builder, home) for home in homes]
        test = GraphBuilder.of(builder, node.attrs["test"], [*now, *others])
        build(test)
        condition = test.scalar(test.graph.outputs[0])
        tested = {i for i, v in enumerate(test.graph.inputs) if v in test.readers}
    with builder.block() as body:
        builder.add(Poll(iteration_cost(node)))
        entries = _iteration(graph, node, homes, [*now, *others], tested)
    for statement in entries.before:
        builder.add(statement)
    builder.add(While(tuple(first), condition, tuple(body), lanes))
    entries.finish()


def _lane_range(graph: GraphBuilder, node: Node, homes: Sequence[Home]) -> LaneRange | None:
    counted = Counted.in_any(node) if node.attrs.get("lanes") else None
    if counted is None:
        return None
    variable = homes[counted.number]
    assert isinstance(variable, Variable)
    return LaneRange(variable, _limit(graph, node, counted))


def _home(graph: GraphBuilder, value: Value) -> Home:
    if value.type.kind == "array":
        if not symbols_of(value.shape) <= graph.builder.shared.outer:
            raise NotNativeError("a carried array of a size that only the run knows")
        return _changed(graph, value)
    variable = graph.builder.variable(value.dtype)
    graph.builder.set(variable, graph.scalar(value))
    return variable


def _present(builder: Builder, home: Home) -> Location:
    return home if isinstance(home, View) else builder.get(home)


def _iteration(
    graph: GraphBuilder, loop: Node, homes: Sequence[Home], operands: Sequence[Location],
    tested: Collection[int],
) -> Entries:
    owned = [h.memory for h in homes if isinstance(h, View)]
    body = loop.attrs["body"]
    inner = GraphBuilder.of(
        graph.builder, body, operands, owned, len(homes), body.name == WAY_BACK)
    entries = find_entries(inner, loop, homes, tested)
    entries.enter()
    build(inner)
    scalars = [inner.scalar(v) for v in inner.graph.outputs]
    finals = {i: inner.array(v) for i, v in inner.graph.updates}
    entries.settle(finals)
    _settle(inner, homes, finals)
    entries.leave()
    variables = [h for h in homes if isinstance(h, Variable)]
    for home, value in zip(variables, scalars, strict=True):
        inner.builder.set(home, value)
    return entries


def _settle(inner: GraphBuilder, homes: Sequence[Home], finals: dict[int, View]) -> None:
    """Give every carried array its new contents, by swapping addresses where that is enough.

    Copies are made of all that lies in memory which is written, before anything is.
    """
    moves: list[tuple[View, View]] = []
    written: list[tuple[View, View]] = []  # arrays of sizes that only the run knows
    moved = {h.memory for i, h in enumerate(homes) if isinstance(h, View) and i not in finals}
    for i, final in finals.items():
        home = homes[i]
        assert isinstance(home, View)
        if not is_static(home.shape):
            written.append((home, _aside(inner, final, homes) if final != home else home))
            continue
        whole = final.is_whole and final.memory in inner.owned and final.memory not in moved and (
            final.memory.nbytes == home.memory.nbytes)
        if not whole:  # aliased, or not in C order: a copy of it is moved
            final = inner.copied(final)
        moved.add(final.memory)
        moves.append((home, final))
    for home, final in written:
        if final != home:
            inner.builder.copy(home, final)
    pairs = exchange([(h.memory, f.memory) for h, f in moves])
    if pairs:
        inner.builder.add(Exchange(pairs))


def _aside(inner: GraphBuilder, final: View, homes: Sequence[Home]) -> View:
    """New contents, not in memory that others' are written to."""
    if not any(isinstance(h, View) and h.memory is final.memory for h in homes):
        return final
    return inner.copied(final)


def exchange(moves: Sequence[tuple[Memory, Memory]]) -> tuple[tuple[Memory, Memory], ...]:
    """The pairs of an `Exchange` that gives each first memory its second one's block; blocks that
    are given up go to those left without any.

    Both of a pair have one size.  So, of each size, as much memory is given up as is left without.
    """
    moves = [(home, final) for home, final in moves if home is not final]
    homes, finals = [h for h, _ in moves], [f for _, f in moves]
    free = sorted((h for h in homes if h not in finals), key=_nbytes)
    emptied = sorted((f for f in finals if f not in homes), key=_nbytes)
    return (*moves, *zip(emptied, free, strict=True))


def _nbytes(memory: Memory) -> int:
    return applied(int, memory.nbytes)


# ----------------------------------------------------------------------------------------- branches


def _cond(graph: GraphBuilder, node: Node) -> None:
    builder = graph.builder
    test, *values = node.inputs
    changed = node.attrs["changed"]
    homes = [_changed(graph, v) for v in values[:changed]]
    operands: list[Location] = [*homes, *(graph.location(v) for v in values[changed:])]
    count = len(node.types) - changed
    results = [_result(graph, v) for v in node.outputs[:count]]
    condition = graph.scalar(test)
    then, orelse = (_side(builder, node.attrs[side], homes, operands, results)
                    for side in ("then", "orelse"))
    builder.add(If(condition, then, orelse))
    for value, home in zip(node.outputs, [*results, *homes], strict=True):
        graph.env[value] = _present(builder, home)


def _changed(graph: GraphBuilder, value: Value) -> View:
    """Memory that the sides may change: all of it, which they may exchange, or, of a size that only
    the run knows, a part, which they write into."""
    view = graph.array(value)
    if view.memory in graph.pinned:
        return graph.copied(view)
    return graph.whole(value) if value.type.is_static else graph.changeable(value)


def _result(graph: GraphBuilder, value: Value) -> Home:
    if value.type.kind == "array":
        return graph.memory_for(value)
    return graph.builder.variable(value.dtype)


def _side(
    builder: Builder, graph: Graph, homes: Sequence[View], operands: Sequence[Location],
    results: Sequence[Home],
) -> Block:
    with builder.block() as statements:
        inner = GraphBuilder.of(builder, graph, operands, [h.memory for h in homes], len(homes))
        inner.want(results)
        build(inner)
        for home, value in zip(results, inner.graph.outputs, strict=True):
            if isinstance(home, Variable):
                builder.set(home, inner.scalar(value))
            elif inner.location(value) is not home:
                builder.copy(home, inner.array(value))
        finals = {i: inner.array(v) for i, v in inner.graph.updates}
        _settle(inner, list(homes), finals)
    return tuple(statements)


_STEPS: dict[str, Callable[[GraphBuilder, Node], None]] = {
    "Fused": kernels.fused, "Pick": picks.pick, "PickUpdate": picks.pick_update,
    "Check": picks.check, "BoundsCheck": picks.bounds_check, "Ran": picks.ran,
    "HostCall": callbacks.host_call,
    "Call": lambda graph, node: functions.call(graph, node, build),
    "Recursion": functions.recursion, "CheckedRecursion": functions.recursion,
    "Loop": _loop, "Cond": _cond, "Reshape": picks.reshape,
    "Extent": slices.extent, "Size": slices.size_number, "Fill": slices.fill,
    "Window": slices.window, "WindowUpdate": slices.window_update,
    "Reserve": slices.reserve, "SliceUpdate": slices.slice_update, "Concat": slices.concat,
    "Counters": counting.counters,
    "Nonzero": selections.nonzero, "Flatnonzero": selections.nonzero,
}

__all__ = ["build", "exchange"]
