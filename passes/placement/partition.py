"""Cuts a placed graph into one graph for each device, with Send and Recv nodes between them.

does    gives every node to the graph of its device; a value that is read on another device is sent
        there once, however many nodes read it; control edges between devices become a Send and a
        Recv without a value
needs   a whole name of a device in every node that runs (`.place`)
leaves  graphs whose inputs are those of the graph that they read, on any device with the same
        memory as the first; views for libraries and constants are repeated where they are read

After section 3.2.2 of the TensorFlow paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.core.records import dataclass, field, replace
from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import DeviceName
from fusec.ops import Namer, get
from fusec.ops.rows.windows import is_made_anywhere

from .constraints import Constraint
from .machine import DeviceModel, Machine
from .schedule_simulation import is_placed, is_view


@dataclass(frozen=True)
class Transfer:
    """One value (or control edge) on its way from one device to another."""

    key: str
    source: DeviceName
    target: DeviceName
    send: Node
    recv: Node

    def moved(self, copies: Mapping[int, Node]) -> Transfer:
        """The same between copies of its nodes, by their ids."""
        return replace(self, send=copies.get(self.send.id, self.send),
                       recv=copies.get(self.recv.id, self.recv))


@dataclass
class Part:
    """The nodes of one device; ``values`` are those of the whole graph, here."""

    device: DeviceModel
    nodes: list[Node] = field(default_factory=list)
    values: dict[Value, Value] = field(default_factory=dict)
    homes: dict[int, Node] = field(default_factory=dict)  # by the id of a node of the whole graph
    namer: Namer = field(default_factory=Namer)

    def add(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    def graph(self, whole: Graph) -> Graph:
        """The part as a graph; its outputs are those of the whole graph that it computes."""
        outputs = [self.values[v] for v in whole.outputs
                   if v in self.values and self._computes(v)]
        updates = [(i, self.values[v]) for i, v in whole.updates
                   if v in self.values and self._computes(v)]
        inputs = tuple(n.out() for n in self.nodes if n.op == "Input")
        places = {v.node.name: i for i, v in enumerate(inputs)}
        kept = tuple((places[name], v) for i, v in updates
                     if (name := whole.inputs[i].node.name) in places)
        return Graph(inputs, tuple(outputs), kept, tuple(self.nodes),
                     f"{whole.name} on {self.device.name.short}")

    def _computes(self, value: Value) -> bool:
        row = get(self.values[value].node.op)
        return not row.is_given and not row.is_transfer


@dataclass
class Partition:
    """A part for each device, and the values sent between them."""

    whole: Graph
    home: DeviceModel
    parts: dict[DeviceModel, Part]
    residence_of: Callable[[Node], DeviceModel]  # of an input
    transfers: list[Transfer] = field(default_factory=list)

    @property
    def graphs(self) -> dict[str, Graph]:
        """The graph of each device, by its whole name."""
        return {str(d.name): part.graph(self.whole) for d, part in self.parts.items()}


def partition(graph: Graph, machine: Machine) -> Partition:
    """See the module docstring."""
    return _Partitioner(graph, machine).run()


class _Partitioner:
    def __init__(self, graph: Graph, machine: Machine) -> None:
        self.graph, self.machine = graph, machine
        self.result = Partition(graph, machine.home, {}, machine.residence_of)
        self.home: dict[int, DeviceModel] = {}  # of the nodes that run, by id
        self.lossy: set[int] = set()
        self.sent: dict[tuple[Value, DeviceModel], Value] = {}
        self.ordered: dict[tuple[int, DeviceModel], Node] = {}

    def run(self) -> Partition:
        for node in self.graph.nodes:
            if is_placed(node):
                constraint = Constraint.parse(node.device)
                self.home[node.id] = self.machine.named(constraint.name)
                if constraint.is_lossy:
                    self.lossy.add(node.id)
        for value in self.graph.inputs:
            self.home[value.node.id] = self.machine.residence_of(value.node)
        for node in self.graph.nodes:
            if is_placed(node):
                self._add(node)
        for number, value in self.graph.updates:
            self._bring(value, self.machine.residence_of(self.graph.inputs[number].node))
        for value in self.graph.outputs:
            self._bring(value, self.machine.home)
        return self.result

    def _part(self, device: DeviceModel) -> Part:
        return self.result.parts.setdefault(device, Part(device))

    def _add(self, node: Node) -> None:
        device = self.home[node.id]
        part = self._part(device)
        inputs = [self._here(v, device) for v in node.inputs]
        control = [self._after(n, device) for n in node.control_inputs if is_placed(n)]
        copy = part.add(node.with_(
            inputs=inputs, name=part.namer.fresh(node.name), control_inputs=control))
        part.homes[node.id] = copy
        part.values.update(zip(node.outputs, copy.outputs, strict=True))

    def _here(self, value: Value, device: DeviceModel) -> Value:
        """The value on this device: a view or constant again, or a receive."""
        part = self._part(device)
        if value in part.values:
            return part.values[value]
        chain = []
        while value not in part.values and is_view(value.node):
            chain.append(value)
            value = value.node.inputs[0]
        here = self._bring(value, device)
        for shown in reversed(chain):
            node = shown.node
            copy = part.add(node.with_(
                inputs=[here], name=part.namer.fresh(node.name), control_inputs=()))
            here = part.values[shown] = copy.out()
        return here

    def _bring(self, value: Value, device: DeviceModel) -> Value:
        part = self._part(device)
        if value in part.values:
            return part.values[value]
        if is_view(value.node):
            return self._here(value, device)
        node = value.node
        if get(node.op).is_given and (
                node.op == "Const" or self._is_shared(node, device)):
            copy = part.add(node.with_(
                inputs=(), name=part.namer.fresh(node.name), control_inputs=()))
            part.values[value] = copy.out()
        elif is_made_anywhere(node):  # there is nothing to send
            inputs = [self._here(v, device) for v in node.inputs]
            copy = part.add(node.with_(
                inputs=inputs, name=part.namer.fresh(node.name), control_inputs=()))
            part.values[value] = copy.out()
        else:
            part.values[value] = self._received(value, device)
        return part.values[value]

    def _is_shared(self, node: Node, device: DeviceModel) -> bool:
        """Whether it reads an input where that is."""
        return device.memory == self.machine.residence_of(node).memory

    def _received(self, value: Value, target: DeviceModel) -> Value:
        source = self.home.get(value.node.id, self.machine.home)
        here = self._bring(value, source)
        recv = self._transferred(
            f"{value.node.name}:{value.index}", [here], (value.type,), (), source, target,
            value.node.id in self.lossy and value.dtype.name == "float32", value.node)
        return recv.out()

    def _after(self, node: Node, device: DeviceModel) -> Node:
        """The node, or the receive that says on this device that it has run."""
        source = self.home[node.id]
        if source is device:
            return self._part(device).homes[node.id]
        if (node.id, device) not in self.ordered:
            self.ordered[node.id, device] = self._transferred(
                f"^{node.name}", [], (), (self._part(source).homes[node.id],), source, device,
                False, node)
        return self.ordered[node.id, device]

    def _transferred(
        self, key: str, values: Sequence[Value], types: tuple, control: Sequence[Node],
        source: DeviceModel, target: DeviceModel, is_lossy: bool, origin: Node,
    ) -> Node:
        there, here = self._part(source), self._part(target)
        send = there.add(Node(
            "Send", values, (), {"key": key, "target": str(target.name), "lossy": is_lossy},
            name=there.namer.fresh("Send"), loc=origin.loc, control_inputs=control,
            device=str(source.name)))
        recv = here.add(Node(
            "Recv", (), types, {"key": key, "source": str(source.name), "results": types},
            name=here.namer.fresh("Recv"), loc=origin.loc, device=str(target.name)))
        self.result.transfers.append(Transfer(key, source.name, target.name, send, recv))
        return recv

