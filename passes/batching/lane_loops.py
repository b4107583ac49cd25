"""A loop over lanes: each lane's nodes by themselves, results as elements of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.dims import Dim, Size
from fusec.ops import Builder
from fusec.ops.rows.sizes import size_value

from ..gradient.bodies import Body

_COUNTER = TensorType(np.dtype(np.int64), (), "weak")


class LaneIteration:
    """``results``: the values ``outs`` of all lanes; ``node`` is the loop, and ``checks`` those of
    its nodes that must run whatever is read."""

    def __init__(
        self, builder: Builder, lanes: Size, values: Mapping[Value, Value], nodes: Sequence[Node],
        outs: Sequence[Value], checks: Sequence[Node],
    ) -> None:
        self.builder, self.lanes = builder, lanes
        self.nodes, self.outs, self.checks = nodes, outs, checks
        builder.loc, builder.device = nodes[0].loc, nodes[0].device
        made = {v for node in nodes for v in node.outputs}
        read = list(dict.fromkeys(v for node in nodes for v in node.inputs if v not in made))
        self.given = {v: values[v] for v in read if v in values}
        self.plain = [v for v in read if v not in values and v.node.op != "Const"]
        stop = self._stop()
        self.outer = list(dict.fromkeys(
            (stop, *self.given.values(), *(v for v in self.plain if v.node.op != "Const"))))
        initial = [builder.const(0), *map(self._room, outs)]
        names = ("lane", *("results" for _ in outs))
        self.node = builder.emit("Loop", *initial, *self.outer, test=self._test(stop),
                                 body=self._body(), carried=len(initial), names=names,
                                 lanes=True).node
        self.results = [self.node.out(1 + k) for k in range(len(outs))]

    def _stop(self) -> Value:
        if isinstance(self.lanes, Dim):
            return size_value(self.builder, self.lanes, self.given.values())
        return self.builder.const(self.lanes)  # of a size of arguments: not one trace for each

    def _room(self, value: Value) -> Value:
        """Memory that nobody has written yet."""
        zero = self.builder.const(value.dtype.type(0))
        nothing = self.builder.emit("BroadcastTo", zero, shape=(0, *value.shape))
        return self.builder.emit("Reserve", nothing, shape=(self.lanes, *value.shape))

    def _opened(self) -> tuple[Body, Value, list[Value]]:
        """A graph of the loop: its counter, and the arrays of results."""
        body = Body(self.builder)
        counter = body.parameter(_COUNTER, "lane")
        targets = [body.parameter(TensorType(v.dtype, (self.lanes, *v.shape)), "results")
                   for v in self.outs]
        for value in self.outer:
            body.parameter(value.type, value.node.name.rpartition("/")[2], value)
        return body, counter, targets

    def _test(self, stop: Value) -> Graph:
        body, counter, _ = self._opened()
        (limit,) = body.copied([stop])
        return body.graph("test", [self.builder.emit("Less", counter, limit)])

    def _body(self) -> Graph:
        body, counter, targets = self._opened()
        for value, array in self.given.items():
            body.values[value] = self._lane_of(value, body.values[array], counter)
        copies = body.copied([*self.outs, *(n.out() for n in self.checks)])
        updates = {1 + k: self._stored(target, counter, value)
                   for k, (target, value) in enumerate(zip(targets, copies, strict=False))}
        after = self.builder.emit("Add", counter, self.builder.const(1))
        checks = [value.node for value in copies[len(self.outs):]]
        return body.graph("body", [after], updates, checks)

    def _lane_of(self, value: Value, array: Value, counter: Value) -> Value:
        kind: dict[str, str] = {}
        if value.type.kind != "array":
            kind["kind"] = value.type.kind
        return self.builder.emit("Pick", array, counter, axes=(0,), safe=(0,), **kind)

    def _stored(self, target: Value, counter: Value, value: Value) -> Value:
        if value.type.kind != "array":
            value = self.builder.emit("BroadcastTo", value, shape=())
        return self.builder.emit("PickUpdate", target, value, counter, axes=(0,), safe=(0,))
