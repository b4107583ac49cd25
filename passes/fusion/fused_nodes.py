"""From groups of roots to ``Fused`` nodes, each with a graph of its own as its body."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import Graph, Node, Value
from fusec.ir.walks import depth_first
from fusec.ops import Namer
from fusec.ops.calls.checks import has_effects, may_raise
from fusec.ops.regions.cones import view_base

from .groups import Unit


def with_fused_nodes(
    graph: Graph, units: list[Unit], home: dict[Value, Unit], unrolled: dict[Value, int],
    tied: set[Value],
) -> Graph:
    """The graph with a ``Fused`` node in the place of each group."""
    namer = Namer(n.name for n in graph.nodes)
    replaced: dict[Value, Value] = {v: v for v in graph.inputs}
    wanted = _wanted_outside(graph, units, home, tied)
    effects: list[Node] = []
    newest = 0  # of what may raise: the next that may is not to come before it, and ids order
    for unit in depth_first(units, lambda unit: reversed([*unit.deps])):
        if unit.opaque is not None:
            node = unit.opaque.with_inputs([_view(v, replaced) for v in unit.opaque.inputs],
                                           _control([unit.opaque], replaced))
            if node.id < newest and (effects or may_raise(node)):
                node = node.with_()
            replaced.update(zip(unit.opaque.outputs, node.outputs, strict=True))
        else:
            node = _emit_group(unit, wanted, unrolled, replaced, namer)
        newest = max(newest, node.id) if effects or may_raise(node) else newest
        effects += [node] if has_effects(node) else []
    return Graph.build(
        graph.inputs, [_value(v, replaced) for v in graph.outputs],
        [(i, _value(v, replaced)) for i, v in graph.updates], graph.name, effects,
    )


def _control(nodes: Iterable[Node], replaced: dict[Value, Value]) -> list[Node]:
    """The control inputs of the nodes, in the new graph."""
    before = (replaced.get(v, v).node for n in nodes for c in n.control_inputs for v in c.outputs)
    return list(dict.fromkeys(before))


def _value(value: Value, replaced: dict[Value, Value]) -> Value:
    return value if value.node.op == "Const" else replaced[value]


def _view(value: Value, replaced: dict[Value, Value]) -> Value:
    """An operand of a library call: views of its base stay views."""
    chain = []
    while value not in replaced and value.node.op != "Const":
        chain.append(value)
        value = value.node.inputs[0]
    result = _value(value, replaced)
    for shown in reversed(chain):
        result = shown.node.with_inputs([result]).out()
        replaced[shown] = result
    return result


def _wanted_outside(
    graph: Graph, units: list[Unit], home: dict[Value, Unit], tied: set[Value]
) -> set[Value]:
    wanted = tied.union(graph.roots)
    for unit in units:
        wanted.update(v for v in unit.roots if has_effects(v.node))
        if unit.opaque is not None:
            wanted.update(view_base(v, tied) for v in unit.opaque.inputs)
        for reach in unit.cones:
            wanted.update(v for v in reach.reads if home.get(v) is not unit)
    return wanted


def _emit_group(
    unit: Unit, wanted: set[Value], unrolled: dict[Value, int], replaced: dict[Value, Value],
    namer: Namer,
) -> Node:
    """The group's node, entered into ``replaced``."""
    results = [v for v in unit.roots if v in wanted]
    body, externals = _body(unit, results, namer.fresh("fused"))
    attrs = {
        "body": body, "domain": unit.domain, "axes": unit.axes or (),
        "boundaries": tuple(unit.boundaries),
    }
    parts = tuple((v.node.name, unrolled[v]) for v in unit.roots if v in unrolled)
    if parts:
        attrs["unrolled"] = parts
    node = Node(
        "Fused", [_value(v, replaced) for v in externals], [v.type for v in results], attrs,
        name=body.name, loc=results[-1].node.loc, device=unit.device,
        control_inputs=_control([v.node for v in unit.roots], replaced),
    )
    replaced.update(zip(results, node.outputs, strict=True))
    return node


def _body(unit: Unit, results: list[Value], name: str) -> tuple[Graph, list[Value]]:
    """The group's own graph, reading its external operands through Input nodes."""
    inside = set(unit.roots)
    nodes, externals = _collect(unit, inside)
    mapping: dict[Value, Value] = {}
    namer = Namer(node.name for node in nodes)
    for position, value in enumerate(externals):  # several outputs of a node are several inputs
        title = namer.fresh(value.node.name)
        attrs = {"index": position, "path": title, "type": value.type}
        source = Node("Input", (), (value.type,), attrs, name=title, loc=value.node.loc)
        mapping[value] = source.out()
    for node in nodes:
        # A copy even when nothing changed: ids must follow the new inputs' ids.
        inputs = [mapping[v] for v in node.inputs]
        copy = node.with_(inputs=inputs, control_inputs=())  # the kernel's node has them
        mapping.update(zip(node.outputs, copy.outputs, strict=True))
    graph = Graph.build(
        [mapping[v] for v in externals], [mapping[v] for v in results], name=name,
    )
    return graph, externals


def _collect(unit: Unit, inside: set[Value]) -> tuple[list[Node], list[Value]]:
    """Nodes recomputed by the group in order, and the values it reads from outside."""
    nodes: dict[int, Node] = {}
    externals: dict[Value, None] = {}
    for root, reach in zip(unit.roots, unit.cones, strict=True):
        nodes[root.node.id] = root.node
        nodes.update((v.node.id, v.node) for v in reach.inlined)
        externals.update((v, None) for v in reach.reads if v not in inside)
    for node in list(nodes.values()):
        nodes.update((v.node.id, v.node) for v in node.inputs if v.node.op == "Const")
    ordered = [nodes[i] for i in sorted(nodes)]
    return ordered, sorted(externals, key=lambda v: (v.node.id, v.index))
