"""Where the program says that nodes are to run: constraints are met, or refused, before fusion.

does    reads the constraint of each node, joins those that must be on one device, intersects the
        feasible devices, and writes one canonical constraint into each
needs   the machine's devices
leaves  ``""`` for nodes that may be anywhere, the whole name of the only device that is feasible,
        or a partial name; nodes with different constraints are not fused

A constraint is a text that passes carry as it is: a name of a device (whole or in part), then
``@name`` for a node that it must be with, then ``~bfloat16`` where values may lose half of their
bits on the way to another device.  Joining is by union-find over intersected feasible sets, as in
section 4.3 of the TensorFlow paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fusec.core.records import dataclass
from fusec.errors import user_error
from fusec.ir import Graph, Node
from fusec.ir.device_names import LOSSY, DeviceName
from fusec.ir.uses import readers
from fusec.ops import get

from .machine import DeviceModel, Machine
from .reshaped_views import copy_reshaped_views
from .schedule_simulation import is_view


@dataclass(frozen=True, slots=True)
class Constraint:
    """The parts of a constraint."""

    name: DeviceName = DeviceName()
    near: str = ""  # the name of the node that it must be with
    is_lossy: bool = False

    @classmethod
    def parse(cls, text: str) -> Constraint:
        text, _, lossy = text.partition("~")
        device, _, near = text.partition("@")
        return cls(DeviceName.parse(device), near, lossy == LOSSY)

    def __str__(self) -> str:
        return f"{self.name}{'@' * bool(self.near)}{self.near}" + f"~{LOSSY}" * self.is_lossy


def constrained(graph: Graph) -> bool:
    """Whether the program says of any node where it is to run."""
    return any(n.device or any(map(constrained, n.graphs)) for n in graph.nodes)


def resolve_constraints(graph: Graph, machine: Machine) -> Graph:
    """See the module docstring.  Raises ``ValueError`` for constraints that no device can meet."""
    stays_away = machine.residence is not None and any(
        _is_copy_of_argument(n) for n in graph.nodes)
    return _resolved(graph, machine) if stays_away or constrained(graph) else graph


def _resolved(graph: Graph, machine: Machine) -> Graph:
    """The graph with canonical constraints, sub-graphs included."""
    classes = _Classes(graph, machine)
    replaced: dict[Any, Any] = {}
    nodes: dict[int, Node] = {}
    for node in graph.nodes:
        device = classes.canonical(node)
        is_whole = classes.is_whole(node) or classes.is_left_whole(node)
        inner = _stripped if is_whole else partial(_resolved, machine=machine)
        attrs = {k: inner(v) if isinstance(v, Graph) and constrained(v) else v
                 for k, v in node.attrs.items()}
        inputs = [replaced.get(v, v) for v in node.inputs]
        control = [nodes.get(n.id, n) for n in node.control_inputs]
        changed = node.with_(inputs=inputs, attrs=attrs, control_inputs=control, device=device)
        nodes[node.id] = changed
        replaced.update(zip(node.outputs, changed.outputs, strict=True))
    placed = Graph(
        tuple(replaced[v] for v in graph.inputs), tuple(replaced[v] for v in graph.outputs),
        tuple((i, replaced[v]) for i, v in graph.updates), tuple(nodes.values()), graph.name,
        graph.assumed)
    return copy_reshaped_views(placed, machine)


def _stripped(graph: Graph) -> Graph:
    """The graph of a branch or loop that runs on one device as a whole."""
    values: dict[Any, Any] = {}
    nodes: dict[int, Node] = {}
    for node in graph.nodes:
        attrs = {k: _stripped(v) if isinstance(v, Graph) and constrained(v) else v
                 for k, v in node.attrs.items()}
        nodes[node.id] = copy = node.with_(
            inputs=[values[v] for v in node.inputs], attrs=attrs, device="",
            control_inputs=[nodes[n.id] for n in node.control_inputs])
        values.update(zip(node.outputs, copy.outputs, strict=True))
    return Graph(
        tuple(values[v] for v in graph.inputs), tuple(values[v] for v in graph.outputs),
        tuple((i, values[v]) for i, v in graph.updates), tuple(nodes.values()), graph.name,
        graph.assumed)


def _is_copy_of_argument(node: Node) -> bool:
    """Whether it is one that no line of the program asks for on a device: a result, or the new
    value of an argument, that is another argument as it was given."""
    return node.op == "Copy" and not node.device and node.inputs[0].node.op == "Input"


def _named(machine: Machine, node: Node) -> tuple[DeviceModel, ...]:
    """The devices that the program names for a node."""
    return machine.admitted(Constraint.parse(node.device).name)


def _inside(node: Node) -> Iterator[DeviceName]:
    """The names of devices in the graphs of a branch or loop."""
    for graph in node.graphs:
        for inner in graph.nodes:
            name = Constraint.parse(inner.device).name
            if str(name):
                yield name
            yield from _inside(inner)


class _Classes:
    """Classes of nodes that must be on one device, each with the devices that are feasible."""

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self.machine = machine
        self.of = {n.name: Constraint.parse(n.device) for n in graph.nodes}
        self.nodes = {n.name: n for n in graph.nodes}
        self.parent = {name: name for name in self.of}
        self.feasible: dict[str, tuple[DeviceModel, ...]] = {}
        self.joined: set[str] = set()  # representatives of classes of several nodes
        self.left = self._left_by_devices(graph)
        for node in graph.nodes:
            self.feasible[node.name] = self._feasible(node)
        gone: dict[str, str] = {}  # nodes that nobody needs, to the first that is to be beside them
        for name, constraint in self.of.items():
            near = constraint.near
            if near and near not in self.nodes:
                near = gone.setdefault(near, name)
            if near and near != name:
                self._join(name, near)

    def canonical(self, node: Node) -> str:
        constraint, machine = self.of[node.name], self.machine
        if get(node.op).is_given:
            return node.device
        root = self._root(node.name)
        devices = self.feasible[root]
        lossy = constraint.is_lossy and len(machine.devices) > 1
        if len(devices) == 1:
            only = machine.automatic == devices == (machine.home,)
            return "" if only else str(Constraint(devices[0].name, is_lossy=lossy))
        near = root if root in self.joined else ""
        name = DeviceName() if set(machine.automatic) <= set(devices) else constraint.name
        return str(Constraint(name, near, lossy))

    def _feasible(self, node: Node) -> tuple[DeviceModel, ...]:
        constraint = self.of[node.name]
        if get(node.op).is_given:
            return self.machine.devices
        residence = self.machine.residence
        if residence is not None and _is_copy_of_argument(node) and residence.supports(node):
            return (residence,)
        named = _named(self.machine, node)
        able = tuple(d for d in named if d.supports(node))
        if node.name in self.left:
            able = tuple(d for d in self.machine.automatic if d.supports(node))
        if able:
            return self._whole(node, able)
        return self._refused(node, constraint, named)

    def _left_by_devices(self, graph: Graph) -> set[str]:
        """Names of nodes that their devices, which run kernels alone, leave to others: nodes
        without a kernel there, and views that nothing else reads."""
        read_by = readers(graph.nodes)
        left: set[str] = set()
        for node in reversed(graph.nodes):
            named = _named(self.machine, node)
            if get(node.op).is_given or not any(d.runs_kernels_alone for d in named):
                continue
            users = read_by.get(node.out(), ()) if is_view(node) else ()
            of_others = bool(users) and all(user.name in left for user in users)
            if of_others or not any(d.supports(node) for d in named):
                left.add(node.name)
        return left

    def _whole(self, node: Node, able: tuple[DeviceModel, ...]) -> tuple[DeviceModel, ...]:
        """A branch or loop is placed as a whole where nodes in it leave a device."""
        inside = {*_inside(node)} if node.graphs and get(node.op).is_control else set()
        if not inside:
            return able
        names = [d for d in self.machine.devices
                 if all(d in self.machine.admitted(name) for name in inside)]
        return tuple(d for d in able if d in names) or tuple(d for d in names if (
            d.supports(node) and not self.of[node.name].name.type)) or able

    def is_whole(self, node: Node) -> bool:
        """Whether everything in a branch or loop may be where it is itself."""
        devices = self.feasible[self._root(node.name)]
        return get(node.op).is_control and all(
            name.admits(d.name) for name in _inside(node) for d in devices)

    def is_left_whole(self, node: Node) -> bool:
        """Whether its device leaves all of a branch or loop to others: one on which the arguments
        are, as arrays are copied once then, and not for each iteration; or one that says so."""
        if node.name not in self.left or not get(node.op).is_control:
            return False
        leaving = self.machine.residence or next(
            (d for d in _named(self.machine, node) if d.leaves_whole(node)), None)
        return leaving is not None and all(
            name.admits(leaving.name) for name in _inside(node))

    def _refused(
        self, node: Node, constraint: Constraint, named: Sequence[DeviceModel]
    ) -> tuple[DeviceModel, ...]:
        able = tuple(d for d in self.machine.automatic if d.supports(node))
        reason = f"no device is {constraint.name}" if not named else (
            f"{_names(named)} has no kernel for {node.op}")
        if self.machine.is_soft and able:
            self.machine.report(f"{node.name} runs on {_names(able)}: {reason}")
            return able
        raise user_error(
            ValueError, f"{node.name} cannot run where it is placed: {reason}", node.loc,
            "name another device, or set fusec.config.soft_placement = True",
            values=[("node", f"{node.name}: {node.op}"), ("constraint", str(constraint.name)),
                    ("devices that can", _names(able) or "none")])

    def _root(self, name: str) -> str:
        while self.parent[name] != name:
            self.parent[name] = name = self.parent[self.parent[name]]
        return name

    def _join(self, name: str, other: str) -> None:
        """Nodes ``name`` and ``other`` are on one device from now on."""
        a, b = self._root(other), self._root(name)
        both = tuple(d for d in self.feasible[a] if d in self.feasible[b])
        if not both:
            both = self._contradicted(name, other)
        if a != b:
            self.parent[b] = a
        self.feasible[a] = both
        self.joined.add(a)

    def _contradicted(self, name: str, other: str) -> tuple[DeviceModel, ...]:
        mine, its = (self.feasible[self._root(n)] for n in (name, other))
        text = f"{name} is to be with {other}, and no device is feasible for both"
        if self.machine.is_soft:
            self.machine.report(f"{text}: it is placed by itself")
            return its
        node, near = self.nodes[name], self.nodes[other]
        raise user_error(
            ValueError, text, node.loc, "drop colocate_with, or name one device for both",
            values=[("node", f"{name}: {node.op}"),
                    ("constraint", f"{self.of[name].name or 'any device'} @ {other}"),
                    (f"candidates of {name}", _names(mine)),
                    (f"candidates of {other}", _names(its)),
                    *([(f"{other} is made at", str(near.loc))] if near.loc else [])])


def _names(devices: Sequence[DeviceModel]) -> str:
    return ", ".join(str(d.name) for d in devices)
