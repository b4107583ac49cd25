"""Values with a derivative that the program gave: the rule is one of all lanes too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ops import Builder, Namer
from fusec.ops.batching import LaneSite


def batched_rule(site: LaneSite, batch: Callable[..., Any]) -> Sequence[Value]:
    """The node with all its operands in lanes, and its rule for all lanes.

    A primal that is the same in each lane is broadcast, so that its cotangents are summed there.
    """
    rule = site.attrs["rule"]
    operands = [site.whole(k) for k in range(len(site.given))]
    first = site.emit(site.node.op, *operands, **{
        **site.attrs, "rule": _of_lanes(rule, site.lanes, batch)})
    return [first.node.out(k) for k in range(len(site.node.types))]


def _of_lanes(rule: Graph, lanes: Any, batch: Callable[..., Any]) -> Graph:
    builder = Builder(Namer(node.name for node in rule.nodes))
    inputs = [_input(v, lanes) for v in rule.inputs]
    found = batch(builder, lanes, dict(zip(rule.inputs, inputs, strict=True)), rule.outputs)
    outputs = []
    for value in rule.outputs:
        whole = found.values.get(value)
        if whole is None:
            whole = builder.emit("BroadcastTo", value, shape=(lanes, *value.shape))
        outputs.append(whole)
    return Graph.build(inputs, outputs, [], rule.name, [])


def _input(value: Value, lanes: Any) -> Value:
    type_ = TensorType(value.dtype, (lanes, *value.shape))
    node = value.node
    attrs = {"index": node.attrs["index"], "path": node.attrs["path"], "type": type_}
    return Node("Input", (), (type_,), attrs, name=node.name, loc=node.loc).out()
