"""The state of every value: the same everywhere, in blocks along lines, or made at a barrier.

does:   goes over a graph of known sizes and says of each value where its axes lie (`Places`), in
        which stage it can be computed, and how those are joined that need every block.
needs:  the graph after `cut_moments`; an argument's chunks for each axis in blocks.
leaves: the graph as it is.

A node whose operands are not in blocks is computed whole.  One that reads an axis in blocks
position by position has blocks itself; one that needs all of such an axis is a `Barrier`, or it is
refused with the line, the axis and the cure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Graph, Node, Value
from fusec.ops import registry
from fusec.ops.calls.checks import has_effects
from fusec.ops.calls.library import LIBRARY, called_name
from fusec.ops.calls.subgraph_ops import is_region
from fusec.ops.splitting.protocol import rule_of

from .barriers import Reduced, barrier_of, moments, scan_totals
from .cuts import Cut
from .grids import Lines, Place
from .loops.regions import place_region
from .split_states import Chunks, SplitStates, is_kept, shown_name


def states_of(graph: Graph, chunks: Chunks, cuts: Sequence[Cut] = ()) -> SplitStates:
    """The states of a graph's values; ``cuts``: its parameters that barriers make of outputs.

    Raises ``UnsupportedError`` for what blocks cannot compute.
    """
    states = placed_inputs(graph.inputs[:len(graph.inputs) - len(cuts)], chunks)
    made = {graph.inputs[cut.parameter]: cut for cut in cuts}
    for node in _in_order(graph, made):
        if node.op == "Input":
            cut = made.get(node.out())
            if cut is not None:
                _place_cut(states, node, cut, graph.outputs[cut.output])
        else:
            place_node(states, node)
    return states


def placed_inputs(inputs: Sequence[Value], chunks: Chunks) -> SplitStates:
    """The states of parameters."""
    states = SplitStates()
    for number, value in enumerate(inputs):
        axes = chunks.get(number, [None] * value.type.rank)
        states.places[value] = tuple(None if sizes is None or len(sizes) < 2 else
                                     states.lines.new(sizes) for sizes in axes)
        states.stages[value] = 0
    return states


def _in_order(graph: Graph, made: Mapping[Value, Cut]) -> Iterator[Node]:
    """The nodes, each after those that it is made of, parameters of cuts after their operands."""
    if not made:
        yield from graph.nodes
        return
    done: set[int] = set()
    stack = [(node, False) for node in reversed(graph.nodes)]
    while stack:
        node, is_ready = stack.pop()
        if node.id in done:
            continue
        if is_ready:
            done.add(node.id)
            yield node
            continue
        stack.append((node, True))
        cut = made.get(node.out()) if node.op == "Input" else None
        before = node.inputs if cut is None else (graph.outputs[cut.output],)
        stack += [(v.node, False) for v in before if v.node.id not in done]


def _place_cut(states: SplitStates, node: Node, cut: Cut, operand: Value) -> None:
    """The places of what was cut out, which the operand's decide."""
    axes = cut.node.attrs["axes"]
    places = states.places[operand]
    reduced = [Reduced(0, axis) for axis in axes if places[axis] is not None]
    value = node.out()
    is_scan = cut.node.op == "Scan"  # which keeps the axis, with a position for each block
    states.places[value] = tuple(
        None if axis in axes else p for axis, p in enumerate(places) if is_scan or axis not in axes)
    states.stages[value] = states.stages[operand] + 1
    states.barriers[value] = (scan_totals if is_scan else moments)(
        value, operand, cut.node, reduced)


def place_node(states: SplitStates, node: Node) -> None:
    """Note the places of a node's results, and their stage.

    Raises ``UnsupportedError`` for what blocks cannot compute.
    """
    stage = max((states.stages[v] for v in node.inputs), default=0)
    if all(map(states.is_whole, node.inputs)):
        for value in node.outputs:
            states.places[value] = (None,) * value.type.rank
            states.stages[value] = stage
        return
    if is_region(node):
        place_region(states, node, place_node)
        states.regions.add(node)
        return
    if has_effects(node):
        raise _refused(node, "a check of values in blocks", "", "check them after the call")
    rule = rule_of(node)
    if rule is None:
        raise _no_rule(states, node)
    found: list[list[Place]] = [[] for _ in range(node.types[0].rank)]
    obstacles: list[Reduced] = []
    for number, operand in enumerate(node.inputs):
        for axis, (place, read) in enumerate(zip(
                states.places[operand], rule.links(node, number), strict=True)):
            if place is None:
                continue
            if read is None or (node.types[0].shape[read.axis] == 1 and node.op == "Slice"):
                obstacles.append(Reduced(number, axis))
            else:
                found[read.axis].append(place._replace(shift=place.shift + read.start))
    value = node.out()
    if obstacles and node.op == "Scan":
        states.scans.add(node)
        found = [[place] if place is not None else [] for place in states.places[node.inputs[0]]]
        stage += 1
    elif obstacles:
        _place_barrier(states, node, obstacles)
        found = [[] if node.op == "Slice" and node.types[0].shape[axis] == 1 else places
                 for axis, places in enumerate(found)]
        stage += 1
    states.places[value] = tuple(_one(states.lines, places) for places in found)
    states.stages[value] = stage + is_kept(node)


def _place_barrier(states: SplitStates, node: Node, obstacles: Sequence[Reduced]) -> None:
    places = [states.places[node.inputs[r.number]][r.axis] for r in obstacles]
    barrier = barrier_of(node, obstacles)
    if barrier is None:
        raise _along(states, node, obstacles[0])
    if len(barrier.reduced) < len(obstacles):  # axes of several operands that go together
        first = places[0]
        for other in places[1:]:
            assert first is not None and other is not None
            states.lines.join(first, other)
    states.barriers[node.out()] = barrier


def _one(lines: Lines, places: Sequence[Place]) -> Place | None:
    """The place of an axis of which operands say several: that of the least shift."""
    if not places:
        return None
    for other in places[1:]:
        lines.join(places[0], other)
    settled = [lines.settled(place) for place in places]
    return min(settled, key=lambda place: (abs(place.shift), place.shift))


# --------------------------------------------------------------------------------------- refusals


def title_of(node: Node) -> str:
    """The node in the user's words."""
    row = registry.get(node.op)
    if node.op == "Slice":
        return "a slice with a step"
    if node.op == "Reshape":
        return "a reshape that merges or divides an axis"
    if row.called:
        return row.called
    if "form" in node.attrs and node.op in LIBRARY:
        return called_name(node.op, node.attrs["form"])
    function = row.numpy[0] if row.numpy else row.ufunc
    return f"np.{node.op.lower()}" if function is None else f"np.{function.__name__}"


def _along(states: SplitStates, node: Node, obstacle: Reduced) -> UnsupportedError:
    axis = obstacle.axis
    operand = node.inputs[obstacle.number]
    place = states.places[operand][axis]
    blocks = states.lines.blocks(states.lines.settled(place).line) if place is not None else 1
    return _refused(
        node, f"{title_of(node)} along axis {axis}, which is in {blocks} blocks,",
        f"{shown_name(operand)}: {operand.type}", _rechunk(axis))


def _rechunk(axis: int) -> str:
    return (f"make that axis one block before the call, where it fits into a worker's memory: "
            f"x.rechunk({{{axis}: -1}})")


def _no_rule(states: SplitStates, node: Node) -> UnsupportedError:
    operand = next(v for v in node.inputs if not states.is_whole(v))
    axes = [axis for axis, place in enumerate(states.places[operand]) if place is not None]
    if node.op == "HostCall":
        return _refused(node, "a call of an object of the program", "",
                        "draw with fusec.random, which is the same for any blocks")
    known = "" if node.types and all(t.is_static for t in node.types) else (
        "the size of its result is known only when it has run")
    cure = _rechunk(axes[0]) if not known else (
        "compute with np.where, which keeps the size, or call .compute() before")
    return _refused(node, f"{title_of(node)} of an array in blocks along axis {axes[0]}", known,
                    cure)


def _refused(node: Node, what: str, note: str, cure: str) -> UnsupportedError:
    return unsupported(what, loc=node.loc, cure=cure, notes=(note,) if note else ())


__all__ = ["place_node", "placed_inputs", "states_of", "title_of"]
