"""A simulated execution: when each node would run on which device, chosen or given.

Placement is greedy, after section 3.2.1 of the TensorFlow paper: nodes are taken one by one, and
each goes where it would finish first, transfers of its operands included.  The order, and gaps that
are filled, are those of HEFT (Topcuoglu, Hariri and Wu, 2002): nodes with the longest way to the
end come first.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.records import dataclass, field

from .costs import Costs, nbytes_of
from .machine import DeviceModel, Machine

Chosen = Callable[[Node], DeviceModel]


@dataclass
class Simulation:
    """Which node runs where and when, in nanoseconds from the start of the step."""

    devices: dict[str, DeviceModel] = field(default_factory=dict)  # by the node's name
    begin: dict[str, float] = field(default_factory=dict)
    end: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def makespan(self) -> float:
        return max(self.end.values(), default=0.0)


def is_placed(node: Node) -> bool:
    """Whether a node runs somewhere: views and constants are where they are read."""
    return not get(node.op).is_given and not is_view(node)


def is_view(node: Node) -> bool:
    """Whether it shows an operand of a library call in another way; a reshape may be a copy."""
    return get(node.op).kind == "view" and node.op != "Reshape"


def sources(node: Node) -> list[Value]:
    """The values whose memory a node reads, those that its operands are views of."""
    return [behind_views(v) for v in node.inputs]


def behind_views(value: Value) -> Value:
    """The value itself, or of a view for a library what it is a view of."""
    while is_view(value.node):
        value = value.node.inputs[0]
    return value


class Simulator:
    """Runs a graph on a machine, on paper."""

    def __init__(self, graph: Graph, machine: Machine, costs: Costs | None = None) -> None:
        self.graph, self.machine = graph, machine
        self.costs = costs or Costs(machine)
        self.nodes = [n for n in graph.nodes if is_placed(n)]
        self.reads = {n.name: [v for v in sources(n) if v.node.op != "Const"] for n in self.nodes}
        self.ranks = self._ranks()

    def run(
        self, feasible: Mapping[str, Sequence[DeviceModel]], classes: Mapping[str, str]
    ) -> Simulation:
        """The greedy placement.  ``classes`` names what must be on one device."""
        simulation = Simulation()
        busy: dict[DeviceModel, list[tuple[float, float]]] = {}
        together: dict[str, DeviceModel] = {}
        for node in sorted(self.nodes, key=lambda n: (-self.ranks[n.name], n.id)):
            kin = classes.get(node.name, "")
            choices = [together[kin]] if kin in together else feasible[node.name]
            ends = [self._tried(simulation, busy, node, device) for device in choices]
            best = min(range(len(ends)), key=lambda i: ends[i][1])
            begin, end = ends[best]
            device = choices[best]
            insort(busy.setdefault(device, []), (begin, end))
            simulation.devices[node.name] = device
            simulation.begin[node.name], simulation.end[node.name] = begin, end
            simulation.reasons[node.name] = _reason(choices, ends, best)
            if kin:
                together[kin] = device
        return simulation

    def _tried(
        self, simulation: Simulation, busy: Mapping[DeviceModel, list[tuple[float, float]]],
        node: Node, device: DeviceModel,
    ) -> tuple[float, float]:
        """When the node would begin and end there."""
        ready = max((self._arrival(simulation, value, device) for value in self.reads[node.name]),
                    default=0.0)
        ready = max([ready, *(simulation.end.get(n.name, 0.0) for n in node.control_inputs)])
        length = self.costs.ns(node, device) + device.launch_ns
        for begin, end in busy.get(device, ()):
            if ready + length <= begin:
                break
            ready = max(ready, end)
        return ready, ready + length

    def _arrival(self, simulation: Simulation, value: Value, device: DeviceModel) -> float:
        if get(value.node.op).is_given:
            home = self.machine.home
            shared = home.memory == device.memory
            return 0.0 if shared else self.machine.transfer(home, device, nbytes_of(value))
        made_on = simulation.devices[value.node.name]
        return simulation.end[value.node.name] + self.machine.transfer(
            made_on, device, nbytes_of(value))

    def _ranks(self) -> dict[str, float]:
        """The longest way from each node to the end, on an average device."""
        ranks: dict[str, float] = {}
        after: dict[str, float] = {}
        for node in reversed(self.nodes):
            times = [self.costs.ns(node, d) + d.launch_ns for d in self.machine.automatic]
            rank = after.get(node.name, 0.0) + sum(times) / len(times)
            ranks[node.name] = rank
            for value in self.reads[node.name]:
                way = rank + self.machine.transfer_ns
                after[value.node.name] = max(after.get(value.node.name, 0.0), way)
            for control in node.control_inputs:
                after[control.name] = max(after.get(control.name, 0.0), rank)
        return ranks


def _reason(
    choices: Sequence[DeviceModel], ends: Sequence[tuple[float, float]], best: int
) -> str:
    if len(choices) == 1:
        return "the only device that is feasible"
    others = ", ".join(f"{1e-3 * end:.0f} µs on {d.name.short}" for i, (d, (_, end)) in enumerate(
        zip(choices, ends, strict=True)) if i != best)
    return f"it would end at {1e-3 * ends[best][1]:.0f} µs, and at {others}"
