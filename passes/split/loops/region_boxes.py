"""Boxes inside of branches and loops that blocks run by themselves.

A loop's boxes are a fixed point: what an iteration reads of a carried value lies in the box that
the one before it gives.  Carried values that a block does not need are left out of its loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from fusec.errors import InternalError
from fusec.ir import Graph, Node, Value
from fusec.ops.calls.checks import has_effects
from fusec.ops.splitting import Box
from fusec.ops.splitting.protocol import sizes_of

from ..split_states import SplitStates
from .regions import SplitRegion

Pull = Callable[[dict[Value, Box], Node], None]


def note_box(boxes: dict[Value, Box], value: Value, box: Box) -> None:
    """Widen the box of a value so that it holds this one."""
    known = boxes.get(value)
    boxes[value] = box if known is None else tuple(
        (min(a, c), max(b, d)) for (a, b), (c, d) in zip(known, box, strict=True))


def whole_box(value: Value) -> Box:
    return tuple((0, size) for size in value.shape)


def effects_of(graph: Graph, regions: Container[Node]) -> list[Node]:
    """Its nodes that are run whatever is read, but for branches and loops that read blocks: what
    these check is checked where their results are read."""
    return [node for node in graph.nodes if node not in regions and has_effects(node)]


def pull_region(
    states: SplitStates, boxes: dict[Value, Box], node: Node, pull: Pull
) -> None:
    """Note the boxes inside, and those of the operands, for the boxes of the results."""
    if not any(v in boxes for v in node.outputs):
        return
    region = SplitRegion(node)
    if region.test is not None:
        _pull_all(states, region.test, region.test.outputs, boxes, pull)
    for _ in range(len(node.types) + 2):
        before = _known(boxes, region)
        _pull_once(states, boxes, region, pull)
        if _known(boxes, region) == before:
            break
    else:
        raise InternalError(f"the boxes of {node.name} do not settle")
    for graph in region.all_graphs:
        for value, operand in zip(graph.inputs, region.operands, strict=True):
            if value in boxes:
                note_box(boxes, operand, boxes[value])
    if not region.is_loop:
        note_box(boxes, node.inputs[0], ())


def _known(boxes: Mapping[Value, Box], region: SplitRegion) -> list[Box | None]:
    values = (*region.node.outputs, *(v for graph in region.all_graphs for v in graph.inputs))
    return [boxes.get(v) for v in values]


def _pull_once(
    states: SplitStates, boxes: dict[Value, Box], region: SplitRegion, pull: Pull
) -> None:
    """One round: from the results through the graphs; of a loop then to its results again."""
    outputs = region.node.outputs
    if region.is_loop:
        (body,) = region.graphs
        test = region.test
        assert test is not None
        for value, inner, tested in zip(outputs, body.inputs, test.inputs, strict=False):
            for known in (value, inner, tested):
                if known in boxes:
                    box = _with_whole_axes(states, value, boxes[known])
                    note_box(boxes, value, box)
                    note_box(boxes, inner, box)
                    if tested in boxes:
                        note_box(boxes, tested, box)
    for graph in region.graphs:
        for value, own in zip(outputs, region.results(graph), strict=True):
            if value in boxes:
                note_box(boxes, own, boxes[value])
        _pull_all(states, graph, (), boxes, pull)


def _with_whole_axes(states: SplitStates, value: Value, box: Box) -> Box:
    """The box, but all of an axis that is not in blocks: an iteration may read its neighbours."""
    return tuple((0, int(size)) if place is None else part for part, place, size in zip(
        box, states.places[value], value.shape, strict=True))


def _pull_all(
    states: SplitStates, graph: Graph, wholes: Sequence[Value], boxes: dict[Value, Box], pull: Pull
) -> None:
    for value in wholes:
        note_box(boxes, value, whole_box(value))
    for node in effects_of(graph, states.regions):
        for value in node.outputs:
            note_box(boxes, value, whole_box(value))
    for node in reversed(graph.nodes):
        if node.op != "Input":
            pull(boxes, node)


def region_key(node: Node, boxes: Mapping[Value, Box]) -> tuple[Any, ...]:
    """Whatever a block's branch or loop depends on, besides its nodes: how boxes lie in each
    other."""
    region = SplitRegion(node)
    parts: list[Any] = []
    for value in node.outputs:
        parts.append(sizes_of(boxes[value]) if value in boxes else None)
    for graph in region.all_graphs:
        parts += [_relative(boxes, value, operand)
                  for value, operand in zip(graph.inputs, region.operands, strict=True)]
    for graph in region.graphs:
        parts += [_relative(boxes, value, own) for value, own in zip(
            node.outputs, region.results(graph), strict=True)]
    return tuple(parts)


def _relative(boxes: Mapping[Value, Box], value: Value, within: Value) -> Any:
    """How the box of a value lies in that of another one."""
    if value not in boxes or within not in boxes:
        return None
    return sizes_of(boxes[value]), tuple(
        a[0] - b[0] for a, b in zip(boxes[value], boxes[within], strict=True))


__all__ = ["effects_of", "note_box", "pull_region", "region_key", "whole_box"]
