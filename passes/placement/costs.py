"""How long nodes take: estimated from their ops, or measured.

Estimates are after the roofline model (Williams, Waterman and Patterson, 2009): the larger of bytes
over bandwidth and operations over rate.  They only have to tell large from small, for where a node
runs is decided by comparing sums of them.
"""

from __future__ import annotations

import hashlib

from fusec.ir import Graph, Node, Value
from fusec.ir.text.text import print_attr
from fusec.ops import get
from fusec.ops.calls.library_work import WORK, points_of
from fusec.ops.rows.windows import is_made_anywhere

from ..fusion.kernel_work import work_of
from .loop_work import control_work
from .machine import DeviceModel, Machine

CALL_NS = 2_000.0  # of any library function
PARALLEL_NS = 32_000.0  # of kernels that use all cores


class Costs:
    """The times of the nodes of one graph."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._works: dict[int, tuple[float, float]] = {}  # by the node's id

    def ns(self, node: Node, device: DeviceModel) -> float:
        """Nanoseconds that the node takes on the device, without the cost of its start."""
        measured = 0.0 if is_made_anywhere(node) else self.measured(node, device)
        if measured is not None:
            return measured
        operations, nbytes = self._work(node)
        ns = max(operations / device.flops_per_ns, nbytes / device.bytes_per_ns)
        if node.op != "Fused":
            return ns + CALL_NS
        return ns / device.cores if ns > PARALLEL_NS else ns

    def measured(self, node: Node, device: DeviceModel) -> float | None:
        """The measured time of such a node on a device of this type, if there is one."""
        if not self.machine.measured:
            return None
        ns = self.machine.measured.get(measured_name(node, device))
        if ns is None or node.op != "Fused":
            return ns
        usual = next((d for d in self.machine.devices if d.name.type == device.name.type), device)
        return on_cores(ns, usual.cores, device.cores)

    def _work(self, node: Node) -> tuple[float, float]:
        if node.id not in self._works:
            self._works[node.id] = _work(node)
        return self._works[node.id]


def measured_name(node: Node, device: DeviceModel) -> str:
    """The key of a node's time in `Machine.measured`."""
    return f"{device.name.type} {signature(node)}"


def on_cores(ns: float, before: int, now: int) -> float:
    """The time of a kernel on so many cores that took ``ns`` on others."""
    alone = ns * before
    if before == now or alone <= PARALLEL_NS:
        return ns
    return alone / now


def signature(node: Node) -> str:
    """The same for nodes that compute the same from operands of the same types."""
    text = f"{node.op}({', '.join(str(v.type) for v in node.inputs)})" + ", ".join(
        f"{k}={print_attr(v, locs=False)}" for k, v in sorted(node.attrs.items())
        if k not in ("boundaries", "names"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def nbytes_of(value: Value) -> float:
    """Bytes, with a guess for sizes that only the run knows."""
    return float(value.dtype.itemsize * points_of(value.shape))


def _work(node: Node) -> tuple[float, float]:
    """Operations, in additions, and bytes."""
    nbytes = sum(map(nbytes_of, (*node.inputs, *node.outputs)))
    if node.op == "Fused":
        return _body_work(node.attrs["body"]), nbytes
    if get(node.op).is_control:
        return control_work(node, {}), nbytes
    largest = max((points_of(v.shape) for v in (*node.inputs, *node.outputs)), default=1.0)
    rule = WORK.get(node.op)
    if rule is not None:
        return rule(node, largest), nbytes
    return 4.0 * largest, nbytes


def _body_work(graph: Graph) -> float:
    return sum((work_of(n.out()) or 1.0) * max(
        points_of(v.shape) for v in (*n.inputs, *n.outputs)) for n in graph.nodes
        if not get(n.op).is_given and n.inputs)
