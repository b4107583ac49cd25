"""A simulated execution: when each node would run on which device, chosen or given.

Placement is greedy, after section 3.2.1 of the TensorFlow paper: nodes are taken one by one, and
each goes where it would finish first, transfers of its operands included.  The order, and gaps that
are filled, are those of HEFT (Topcuoglu, Hariri and Wu, 2002): nodes with the longest way to the
end come first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.calls.library_work import keeps_interpreter

from .costs import Costs, nbytes_of
from .machine import DeviceModel, Machine

# When each device has something to do, and (None) the interpreter has that lets nobody else run.
Busy = dict[DeviceModel | None, list[tuple[float, float]]]


@dataclass
class Simulation:
    """Which node runs where and when, in nanoseconds from the start of the step."""

    devices: dict[str, DeviceModel] = field(default_factory=dict)  # by the node's name
    begin: dict[str, float] = field(default_factory=dict)
    end: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    makespan: float = 0.0  # until every result is on the first device


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
    """The value itself, or the base of a view for a library."""
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
        self.exclusive = {n.name for n in self.nodes if keeps_interpreter(n)}
        self.results = {behind_views(v) for v in graph.roots}
        self._lengths: dict[tuple[int, DeviceModel], float] = {}
        self._nbytes: dict[Value, float] = {}
        self.order = self._ordered(None)

    def length(self, node: Node, device: DeviceModel) -> float:
        """Nanoseconds that the node occupies the device."""
        key = node.id, device
        if key not in self._lengths:
            self._lengths[key] = self.costs.ns(node, device) + device.launch_ns
        return self._lengths[key]

    def run(
        self, feasible: Mapping[str, Sequence[DeviceModel]], classes: Mapping[str, str]
    ) -> Simulation:
        """The greedy placement.  ``classes`` names nodes that must be on one device."""
        simulation = Simulation()
        busy: Busy = {}
        together: dict[str, DeviceModel] = {}
        for node in self.order:
            kin = classes.get(node.name, "")
            choices = [together[kin]] if kin in together else feasible[node.name]
            ends = [self._tried(simulation, busy, node, device) for device in choices]
            homes = [self._home_at(node, d, end) for d, (_, end) in zip(choices, ends, strict=True)]
            best = homes.index(min(homes))
            self._enter(simulation, busy, node, choices[best], ends[best])
            simulation.reasons[node.name] = _reason(choices, homes, best)
            if kin:
                together[kin] = choices[best]
        return simulation

    def run_placed(self, devices: Mapping[str, DeviceModel]) -> Simulation:
        """The execution of a graph whose nodes are on these devices, by name."""
        simulation = Simulation()
        busy: Busy = {}
        for node in self._ordered(devices):
            device = devices[node.name]
            self._enter(simulation, busy, node, device, self._tried(
                simulation, busy, node, device))
        return simulation

    def _enter(
        self, simulation: Simulation, busy: Busy,
        node: Node, device: DeviceModel, span: tuple[float, float],
    ) -> None:
        insort(busy.setdefault(device, []), span)
        if node.name in self.exclusive:
            insort(busy.setdefault(None, []), span)
        simulation.devices[node.name] = device
        simulation.begin[node.name], simulation.end[node.name] = span
        simulation.makespan = max(simulation.makespan, self._home_at(node, device, span[1]))

    def _home_at(self, node: Node, device: DeviceModel, end: float) -> float:
        """When the node's result is where the program reads it."""
        home = self.machine.home
        return end + max((self._transfer(v, device, home) for v in node.outputs
                          if v in self.results), default=0.0)

    def _tried(
        self, simulation: Simulation, busy: Busy,
        node: Node, device: DeviceModel,
    ) -> tuple[float, float]:
        """When the node would begin and end there."""
        ready = max((self._arrival(simulation, value, device) for value in self.reads[node.name]),
                    default=0.0)
        ready = max([ready, *(simulation.end.get(n.name, 0.0) for n in node.control_inputs)])
        length = self.length(node, device)
        users = (device, None) if node.name in self.exclusive else (device,)
        begin = -1.0
        while begin != ready:  # free in both at once
            begin = ready
            for user in users:
                ready = _gap(busy.get(user, ()), ready, length)
        return begin, begin + length

    def _arrival(self, simulation: Simulation, value: Value, device: DeviceModel) -> float:
        if get(value.node.op).is_given:
            home = self.machine.residence_of(value.node)
            shared = home.memory == device.memory
            return 0.0 if shared else self._transfer(value, home, device)
        made_on = simulation.devices[value.node.name]
        return simulation.end[value.node.name] + self._transfer(value, made_on, device)

    def _ordered(self, devices: Mapping[str, DeviceModel] | None) -> list[Node]:
        """The nodes by the longest way from each to the end, the longest first; where it is not
        said which device each is on, on an average one."""
        ranks: dict[str, float] = {}
        after: dict[str, float] = {}
        for node in reversed(self.nodes):
            name = node.name
            on = self.machine.automatic if devices is None else (devices[name],)
            ranks[name] = rank = after.get(name, 0.0) + sum(
                self.length(node, d) for d in on) / len(on)
            for value in self.reads[name]:
                if value.node.name in self.reads:
                    made_on = None if devices is None else devices[value.node.name]
                    way = rank + self._flight(value, made_on, on[0])
                    after[value.node.name] = max(after.get(value.node.name, 0.0), way)
            for control in node.control_inputs:
                after[control.name] = max(after.get(control.name, 0.0), rank)
        return sorted(self.nodes, key=lambda n: (-ranks[n.name], n.id))

    def _flight(self, value: Value, source: DeviceModel | None, target: DeviceModel) -> float:
        """Nanoseconds until the value can be read; between any two devices on average."""
        if source is not None:
            return self._transfer(value, source, target)
        some = self.machine.automatic
        return sum(self._transfer(value, a, b) for a in some for b in some) / len(some) ** 2

    def _transfer(self, value: Value, source: DeviceModel, target: DeviceModel) -> float:
        if value not in self._nbytes:
            self._nbytes[value] = nbytes_of(value)
        return self.machine.transfer(source, target, self._nbytes[value])


def _gap(spans: Sequence[tuple[float, float]], ready: float, length: float) -> float:
    """The first time from which on there is nothing for so long."""
    for at in range(max(bisect_left(spans, (ready, 0.0)) - 1, 0), len(spans)):
        if ready + length <= spans[at][0]:
            break
        ready = max(ready, spans[at][1])
    return ready


def _reason(choices: Sequence[DeviceModel], ends: Sequence[float], best: int) -> str:
    if len(choices) == 1:
        return "the only device that is feasible"
    others = ", ".join(f"{1e-3 * end:.0f} µs on {d.name.short}" for i, (d, end) in enumerate(
        zip(choices, ends, strict=True)) if i != best)
    return f"it ends at {1e-3 * ends[best]:.0f} µs there, at {others}"
