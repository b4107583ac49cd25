"""A view that a device reshapes becomes a copy in C order there: devices have no library for it.

A reshape of values in C order is a view, for which nothing runs.
"""

from __future__ import annotations

from collections.abc import Callable

from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import DeviceName
from fusec.ops import Builder, Namer, get

from .machine import Machine


def copy_reshaped_views(graph: Graph, machine: Machine) -> Graph:
    """The graph, whose nodes have canonical constraints; those of branches and loops that run on
    one device as a whole have none, for their reshapes copy by themselves."""
    devices = [d for d in machine.devices if d.runs_kernels_alone]
    return _copied(graph, lambda node: any(_may_be_on(d.name, node) for d in devices))


def copy_all_reshaped_views(graph: Graph) -> Graph:
    """The same of a sub-graph that such a device runs step by step."""
    return _copied(graph, lambda node: True)


def _copied(graph: Graph, is_there: Callable[[Node], bool]) -> Graph:
    builder = Builder(Namer(n.name for n in graph.nodes))
    nodes: list[Node] = []
    replaced: dict[Value, Value] = {}
    copies: dict[int, Node] = {}
    for node in graph.nodes:
        inputs = [replaced.get(v, v) for v in node.inputs]
        if _is_of_view(node) and is_there(node):
            builder.loc, builder.device = node.loc, node.device
            inputs = [builder.emit("Copy", inputs[0])]
            nodes.append(inputs[0].node)
        control = [copies.get(n.id, n) for n in node.control_inputs]
        changed = node if (
            tuple(inputs) == node.inputs and tuple(control) == node.control_inputs
        ) else node.with_(inputs=inputs, control_inputs=control)
        nodes.append(changed)
        copies[node.id] = changed
        replaced.update(zip(node.outputs, changed.outputs, strict=True))
    if len(nodes) == len(graph.nodes):
        return graph
    return Graph(
        graph.inputs, tuple(replaced.get(v, v) for v in graph.outputs),
        tuple((i, replaced.get(v, v)) for i, v in graph.updates), tuple(nodes), graph.name,
        graph.assumed)


def _is_of_view(node: Node) -> bool:
    source = node.inputs[0].node if node.op == "Reshape" else None
    return source is not None and source.op != "Reshape" and get(source.op).kind == "view"


def _may_be_on(device: DeviceName, node: Node) -> bool:
    name = DeviceName.parse(node.device.partition("~")[0].partition("@")[0])
    return name.type == device.type and name.admits(device)
