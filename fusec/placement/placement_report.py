"""Which device each node was placed on, why, and the values sent between devices, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fusec.codegen import backends
from fusec.core.display.amounts import bytes_text
from fusec.ir import Graph, Node
from fusec.ops.rows.windows import is_made_anywhere
from fusec.passes.placement.constraints import Constraint
from fusec.passes.placement.costs import Costs, nbytes_of
from fusec.passes.placement.partition import Transfer
from fusec.passes.placement.schedule_simulation import is_placed
from fusec.runtime.devices import registry
from fusec.runtime.devices.device import Device

if TYPE_CHECKING:
    from fusec.placement.placed_graph import Placed


def placement_lines(placed: Placed) -> list[str]:
    """A line for each node, by device in the order in which they begin, then the transfers."""
    lines = [note for note in (placed.anew, placed.placement.note) if note]
    if not placed.is_divided:
        return lines
    lines += [line for node in _by_device(placed) for line in _node_lines(placed, node)]
    transfers = placed.partition().transfers
    return lines + [_transfer_line(t) for t in transfers] + _notes(placed)


def _notes(placed: Placed) -> list[str]:
    """What is slower than it should be on devices that have a part of it."""
    devices = placed.placement.simulation.devices.values()
    kinds = filter(None, map(backends.kind_of, dict.fromkeys(d.name.type for d in devices)))
    return [note for kind in kinds for note in kind.notes()]


def refusal_lines(graph: Graph) -> list[str]:
    """Nodes for which devices that the program names have no kernel, and why, in the graph that
    was asked for constraints; only where the node's kind does not say it."""
    return list(dict.fromkeys(
        f"{device.name.short}  no kernel for {node.name}{f' at {node.loc}' if node.loc else ''}: "
        f"{reason}"
        for node in _within(graph) for device in _named_by(node)
        if (reason := backends.backend(device.backend).refusal(node))))


def _within(graph: Graph) -> Iterator[Node]:
    """Nodes, and those inside of them, but for lanes that are one kernel."""
    for node in graph.nodes:
        yield node
        if not node.attrs.get("lanes") or any(
                backends.backend(d.backend).refusal(node) for d in _named_by(node)):
            for inner in node.graphs:
                yield from _within(inner)


def _named_by(node: Node) -> Iterator[Device]:
    name = Constraint.parse(node.device).name
    return (d for d in registry.devices()
            if name.type is not None and name.admits(d.name) and not d.is_automatic)


def _by_device(placed: Placed) -> list[Node]:
    times = placed.placement.simulation.begin
    nodes = [n for n in placed.graph.nodes if is_placed(n) and not is_made_anywhere(n)]
    return sorted(nodes, key=lambda n: (n.device, times.get(n.name, 0.0)))


def _node_lines(placed: Placed, node: Node) -> Iterator[str]:
    simulation = placed.placement.simulation
    device = simulation.devices[node.name].name.short
    us = 1e-3 * (simulation.end[node.name] - simulation.begin[node.name])
    where = f" at {node.loc}" if node.loc else ""
    known = Costs(placed.machine).measured(placed.fused[node.name], simulation.devices[node.name])
    basis = "by estimate" if known is None else "as it was measured"
    yield f"{device}  {node.name}{where}: {us:.0f} µs {basis}"
    yield f"  {simulation.reasons.get(node.name, '')}"


def _transfer_line(transfer: Transfer) -> str:
    way = f"{transfer.source.short} -> {transfer.target.short}"
    if not transfer.recv.types:
        return f"{way}  {transfer.key[1:]} has run"
    lossy = ", as bfloat16" if transfer.send.attrs["lossy"] else ""
    size = bytes_text(int(nbytes_of(transfer.recv.out())))
    after = ", ".join(n.name for n in transfer.recv.control_inputs)
    return f"{way}  {transfer.key}: {size}{lossy}{f', not before {after}' if after else ''}"
