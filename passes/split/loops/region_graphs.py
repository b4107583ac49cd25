"""The branch or loop of one block, of boxes that `pull_region` found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.graph import new_id
from fusec.ops.splitting import Box
from fusec.ops.splitting.protocol import sizes_of

from ...gradient.bodies import Body, placeholder
from ..local_maker import LocalMaker
from .region_boxes import effects_of
from .regions import SplitRegion


def make_region(
    maker: LocalMaker, node: Node, boxes: Mapping[Value, Box],
    make: Callable[[LocalMaker, Node, Mapping[Value, Box]], None],
) -> None:
    """Make the branch or loop of one block."""
    region = SplitRegion(node)
    kept = [k for k, v in enumerate(node.outputs) if v in boxes]
    insides = [_LocalRegion(maker, region, graph, boxes, make) for graph in region.all_graphs]
    outer = list(dict.fromkeys(v for inside in insides for v in inside.outer))
    maker.loc = node.loc
    if region.is_loop:
        test, body = insides
        graphs: dict[str, Any] = {
            "test": test.graph("test", outer, kept, list(test.own.outputs)),
            "body": body.graph("body", outer, kept, body.results(kept), is_body=True)}
        initial = [maker.fetched(node.inputs[k], boxes[node.outputs[k]]) for k in kept]
        names = node.attrs.get("names") or ("",) * len(node.types)
        made = maker.emit("Loop", *initial, *outer, **graphs, carried=len(kept),
                          names=tuple(names[k] for k in kept)).node
    else:
        then, orelse = insides
        graphs = {side: inside.graph(side, outer, (), inside.results(kept))
                  for side, inside in (("then", then), ("orelse", orelse))}
        test_ = maker.fetched(node.inputs[0], ())
        made = maker.emit("Cond", test_, *outer, **graphs, changed=0).node
    for number, k in enumerate(kept):
        maker.made[node.outputs[k]] = made.out(number)


class _LocalRegion:
    """One graph of a branch or loop, made for a block.  ``outer``: the values around it that it
    reads."""

    def __init__(
        self, maker: LocalMaker, region: SplitRegion, graph: Graph, boxes: Mapping[Value, Box],
        make: Callable[[LocalMaker, Node, Mapping[Value, Box]], None],
    ) -> None:
        self.maker, self.region, self.own, self.boxes = maker, region, graph, boxes
        self.placeholders: dict[int, Value] = {}  # of carried values, by their number
        carried = len(region.node.types) if region.is_loop else 0
        given: list[Value] = []
        for number, (value, operand) in enumerate(
                zip(graph.inputs, region.operands, strict=True)):
            if number < carried:
                if region.node.outputs[number] in boxes:
                    self._carry(number, value)
            elif value in boxes:
                maker.made[value] = maker.fetched(operand, boxes[value])
                given.append(maker.made[value])
        first = new_id()
        for node in graph.nodes:
            if node.op != "Input" and any(v in boxes for v in node.outputs):
                make(maker, node, boxes)
        self.effects = [maker.made[node.out()].node
                        for node in effects_of(graph, maker.family.regions)]
        self.ends = {value: maker.fetched(value, boxes[like]) for value, like in self._wanted()}
        self.outer = self._outer(first)

    def _carry(self, number: int, value: Value) -> None:
        """A placeholder of a carried value, of the box that iterations hand on."""
        box = self.boxes[self.region.node.outputs[number]]
        type_ = value.type
        own = TensorType(type_.dtype, sizes_of(box), type_.kind)
        self.placeholders[number] = self.maker.made[value] = placeholder(
            self.maker, own, value.node.name)

    def _wanted(self) -> Iterator[tuple[Value, Value]]:
        """The values at the end, each with that whose box is wanted."""
        if self.own is self.region.test:
            yield from ((v, v) for v in self.own.outputs)
            return
        for own, value in zip(
                self.region.results(self.own), self.region.node.outputs, strict=True):
            if value in self.boxes:
                yield own, value

    def results(self, kept: Sequence[int]) -> list[Value]:
        """The made values of these results of the branch or loop."""
        ends = self.region.results(self.own)
        return [ends[k] for k in kept]

    def _outer(self, first: int) -> list[Value]:
        """What was made before, or is a parameter, and is read inside."""
        inside = {*self.placeholders.values()}
        found: dict[Value, None] = {}
        roots = [*self.ends.values(), *(n.out() for n in self.effects)]
        stack, seen = roots, set[Value]()
        while stack:
            value = stack.pop()
            if value in seen or value in inside:
                continue
            seen.add(value)
            if value.node.op == "Input" or (value.node.id <= first and value.node.op != "Const"):
                found[value] = None
            else:
                stack += value.node.inputs
        return sorted(found, key=lambda v: (v.node.id, v.index))

    def graph(
        self, name: str, outer: Sequence[Value], kept: Sequence[int], results: Sequence[Value],
        is_body: bool = False,
    ) -> Graph:
        """The graph; its parameters are the carried values, then those from around it."""
        body = Body(self.maker)
        for number in kept:
            type_ = self.placeholders[number].type
            body.parameter(type_, self.own.inputs[number].node.name, self.placeholders[number])
        for value in outer:
            body.parameter(value.type, value.node.name, value)
        made = [self.ends[v] for v in results]
        copies = body.copied([*made, *(n.out() for n in self.effects)])
        effects = [v.node for v in copies[len(made):]]
        if not is_body:
            return body.graph(name, copies[:len(made)], None, effects)
        arrays = {k: v for k, v in enumerate(copies[:len(made)]) if v.type.kind == "array"}
        scalars = [v for v in copies[:len(made)] if v.type.kind != "array"]
        return body.graph(name, scalars, arrays, effects)


__all__ = ["make_region"]
