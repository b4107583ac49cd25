"""Chooses a device for every node of a fused graph.

does    runs the greedy simulated execution over the devices that each node's constraint leaves,
        improves it by a local search, compares it with the whole graph on one device, and writes
        the device into each node
needs   canonical constraints (`.constraints`), fused nodes
leaves  a whole name of a device in every node that runs; or the graph itself, where one device,
        the first, does it all
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node

from .constraints import Constraint
from .costs import Costs
from .local_search import improved
from .machine import DeviceModel, Machine
from .schedule_simulation import Simulation, Simulator, is_placed

# A graph is divided where that saves this part of the time, and this much.
LEAST_GAIN, LEAST_GAIN_NS = 0.05, 100_000.0

Choose = Callable[[Node, Sequence[DeviceModel]], DeviceModel]


@dataclass
class Placement:
    """Which device each node runs on, and why; ``note`` says it of the whole graph.

    ``ns`` is how long it should take.  ``is_doubtful``: by estimates that may be far off.
    """

    simulation: Simulation
    is_divided: bool
    ns: float
    is_doubtful: bool
    note: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


def place(
    graph: Graph, machine: Machine, choose: Choose | None = None
) -> tuple[Graph, Placement | None]:
    """See the module docstring; None where there is nothing to choose.

    ``choose`` decides instead of the simulation, for tests of other placements.
    """
    constraints = {n.name: Constraint.parse(n.device) for n in graph.nodes if is_placed(n)}
    stays = machine.residence is None  # what lives on the host may run there, undivided
    if stays and len(machine.automatic) == 1 and not any(map(str, constraints.values())):
        return graph, None
    feasible = {name: _feasible(machine, graph[name], c) for name, c in constraints.items()}
    classes = _classes(constraints)
    if choose is not None:
        feasible = _chosen(graph, feasible, classes, choose)
    simulator = Simulator(graph, machine, Costs(machine))
    simulation = simulator.run(feasible, classes)
    alone = None if choose is not None or not stays else _on_one(simulator, feasible)
    if choose is None and (alone is None or alone >= LEAST_GAIN_NS):
        simulation = improved(simulator, simulation, feasible, classes)
    guessed = _guessed(simulator, simulation)
    is_doubtful = choose is None and _is_doubtful(simulator, simulation, guessed)
    basis = "by estimate" if guessed else "by measured times"
    together = simulation.makespan
    gain = 0.0 if alone is None else alone - together
    if alone is not None and gain < max(LEAST_GAIN * alone, LEAST_GAIN_NS):
        return graph, Placement(simulation, False, alone, is_doubtful, (
            f"all on {machine.home.name.short}, in {1e-3 * alone:.0f} µs {basis}; divided it "
            f"would take {1e-3 * together:.0f} µs"))
    note = "" if alone is None else (
        f"divided: {1e-3 * together:.0f} µs {basis}, on one device {1e-3 * alone:.0f} µs")
    used = {simulation.devices[n.name] for n in simulator.nodes}
    if stays and used <= {machine.home}:
        return graph, Placement(simulation, False, together, is_doubtful,
                                f"all on {machine.home.name.short}")
    return placed(graph, simulation), Placement(
        simulation, True, together, is_doubtful, note, simulation.reasons)


def estimate(graph: Graph, machine: Machine, placement: Placement) -> float:
    """Nanoseconds that a placed graph should take, by the machine's figures of now."""
    simulator = Simulator(graph, machine)
    if placement.is_divided:
        return simulator.run_placed(placement.simulation.devices).makespan
    device = machine.whole or machine.home
    return sum(simulator.costs.ns(node, device) for node in simulator.nodes)


def _guessed(simulator: Simulator, simulation: Simulation) -> list[Node]:
    """The nodes whose time has not been measured."""
    return [n for n in simulator.nodes
            if simulator.costs.measured(n, simulation.devices[n.name]) is None]


def _is_doubtful(simulator: Simulator, simulation: Simulation, guessed: Sequence[Node]) -> bool:
    """Whether other times than the estimated ones could say otherwise.

    The estimates of kernels are good enough to see that a graph is too small to be divided; the
    time of a library or a loop depends on more than sizes.
    """
    costs, devices = simulator.costs, simulation.devices
    return len(simulator.machine.automatic) > 1 and (
        any(n.op != "Fused" for n in guessed)
        or sum(costs.ns(n, devices[n.name]) for n in guessed) > LEAST_GAIN_NS / 10)


def placed(graph: Graph, simulation: Simulation) -> Graph:
    """The graph with the name of its device, and its constraint's format of sends, in each
    node."""
    values: dict = {}
    nodes: dict[int, Node] = {}
    for node in graph.nodes:
        device = node.device
        if node.name in simulation.devices:
            lossy = Constraint.parse(node.device).is_lossy
            device = str(Constraint(simulation.devices[node.name].name, is_lossy=lossy))
        changed = node.with_(
            inputs=[values.get(v, v) for v in node.inputs], device=device,
            control_inputs=[nodes[n.id] for n in node.control_inputs])
        nodes[node.id] = changed
        values.update(zip(node.outputs, changed.outputs, strict=True))
    return Graph(
        tuple(values[v] for v in graph.inputs), tuple(values[v] for v in graph.outputs),
        tuple((i, values[v]) for i, v in graph.updates), tuple(nodes.values()), graph.name,
        graph.assumed)


def _feasible(
    machine: Machine, node: Node, constraint: Constraint
) -> tuple[DeviceModel, ...]:
    named = machine.admitted(constraint.name)
    return tuple(d for d in named if d.supports(node)) or machine.automatic[:1]


def _classes(constraints: Mapping[str, Constraint]) -> dict[str, str]:
    """The class of each node that must be with others."""
    return {name: c.near for name, c in constraints.items() if c.near}


def _chosen(
    graph: Graph, feasible: Mapping[str, Sequence[DeviceModel]], classes: Mapping[str, str],
    choose: Choose,
) -> dict[str, tuple[DeviceModel, ...]]:
    of_class: dict[str, DeviceModel] = {}
    chosen: dict[str, tuple[DeviceModel, ...]] = {}
    for name, devices in feasible.items():
        kin = classes.get(name, "")
        device = of_class.get(kin) or choose(graph[name], devices)
        if kin:
            of_class[kin] = device
        chosen[name] = (device,)
    return chosen


def _on_one(
    simulator: Simulator, feasible: Mapping[str, Sequence[DeviceModel]]
) -> float | None:
    """Nanoseconds of the graph on the home device alone, where it is one native path; None where
    a node must be elsewhere."""
    home = simulator.machine.home
    if any(home not in devices for devices in feasible.values()):
        return None
    device = simulator.machine.whole or home
    return sum(simulator.costs.ns(node, device) for node in simulator.nodes)


__all__ = ["Choose", "Placement", "estimate", "place", "placed"]
