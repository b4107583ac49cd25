"""Receives start no sooner than they must: an early one only takes memory.

does    for each Recv finds when its first reader would begin (by the simulated execution, which
        takes every node as soon as it can: ASAP) and how late that may be without delaying the end
        (ALAP); the Recv gets a control edge from the last node of its device, before it in the
        program, that ends before it must begin
needs   a partition and the simulation that placed it
leaves  the same partition; control edges only lead forward in the program's order, so that nothing
        can wait for itself

After section 5.2 of the TensorFlow paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.ir import Node, Value
from fusec.ops.rows.windows import is_made_anywhere

from .costs import nbytes_of
from .machine import Machine
from .partition import Part, Partition
from .schedule_simulation import Simulation, is_placed


def latest_begins(partition: Partition, simulation: Simulation) -> dict[str, float]:
    """When each node must begin at the latest, for the step to end when it does (ALAP)."""
    graph = partition.whole
    latest: dict[str, float] = {}
    for node in reversed(graph.nodes):
        if node.name not in simulation.begin:
            continue
        length = simulation.end[node.name] - simulation.begin[node.name]
        must_end = latest.get(f"end {node.name}", simulation.makespan)
        latest[node.name] = must_end - length
        for before in (*(v.node for v in node.inputs), *node.control_inputs):
            key = f"end {before.name}"
            latest[key] = min(latest.get(key, simulation.makespan), latest[node.name])
    return {name: time for name, time in latest.items() if not name.startswith("end ")}


def order_receives(
    partition: Partition, simulation: Simulation, machine: Machine
) -> Partition:
    """The partition with control edges that delay its receives."""
    latest = latest_begins(partition, simulation)
    delays: dict[str, Node] = {}
    for part in partition.parts.values():
        names = {copy.id: self_name for self_name, copy in _names(partition, part).items()}
        for position, node in enumerate(part.nodes):
            if node.op == "Recv" and node.types:
                before = _delayed_until(
                    part, position, node, names, simulation, latest, machine)
                if before is not None:
                    delays[node.name + str(part.device.name)] = before
    for part in partition.parts.values():
        _rebuild(part, delays, partition)
    return partition


def _names(partition: Partition, part: Part) -> dict[str, Node]:
    """The copies on this device by the names of the nodes of the whole graph."""
    by_id = {n.id: n.name for n in partition.whole.nodes}
    return {by_id[number]: copy for number, copy in part.homes.items()}


def _delayed_until(
    part: Part, position: int, recv: Node, names: Mapping[int, str], simulation: Simulation,
    latest: Mapping[str, float], machine: Machine,
) -> Node | None:
    """The node that the Recv waits for, if it need not start at once."""
    readers = [names[n.id] for n in part.nodes[position:] if n.id in names and any(
        _behind(v) is recv for v in n.inputs)]
    if not readers:
        return None
    needed = min(simulation.begin[name] + 0.5 * max(latest[name] - simulation.begin[name], 0.0)
                 for name in readers)
    source = next(d for d in machine.devices if str(d.name) == recv.attrs["source"])
    start = needed - machine.transfer(source, part.device, nbytes_of(recv.out()))
    before = [n for n in part.nodes[:position] if n.id in names and not is_made_anywhere(n) and (
        simulation.end[names[n.id]] <= start)]
    return max(before, key=lambda n: simulation.end[names[n.id]], default=None)


def _behind(value: Value) -> Node:
    """The node of this device whose memory an operand shows."""
    node = value.node
    while not is_placed(node) and node.inputs:
        node = node.inputs[0].node
    return node


def _rebuild(part: Part, delays: Mapping[str, Node], partition: Partition) -> None:
    """The part's nodes anew, with the control edges of its receives."""
    if not any(n.name + str(part.device.name) in delays for n in part.nodes):
        return
    copies: dict[int, Node] = {}
    values: dict[Value, Value] = {}
    for node in part.nodes:
        control: Sequence[Node] = [copies[n.id] for n in node.control_inputs]
        delay = delays.get(node.name + str(part.device.name))
        if delay is not None:
            control = [*control, copies[delay.id]]
        copy = node.with_(inputs=[values[v] for v in node.inputs], control_inputs=control)
        copies[node.id] = copy
        values.update(zip(node.outputs, copy.outputs, strict=True))
    part.nodes[:] = copies.values()
    part.values = {v: values[here] for v, here in part.values.items()}
    part.homes = {number: copies[n.id] for number, n in part.homes.items()}
    partition.transfers[:] = [t.moved(copies) for t in partition.transfers]
