"""The first calls of a trace that was placed by estimates.

They are slower, because kernels run one by one, and each step is timed; then they are as quick as
they can be.  The graph is placed anew if the times say that another placement would end much
sooner.  That happens once: measured times change with other work of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.core import locks
from fusec.ir import Node
from fusec.passes.placement.costs import measured_name, on_cores
from fusec.passes.placement.machine import DeviceModel, Machine
from fusec.passes.placement.place import Placement
from fusec.passes.placement.schedule_simulation import is_placed

CALLS = 5
LEAST_GAIN = 0.2  # of the time: measurements differ by that much
Anew = tuple[CallPlan, Any]  # what runs from now on, and the `Placed` that it was made from


class Trial:
    """The times of a trace's steps in its first calls.  Thread-safe.

    ``least`` are nanoseconds, as in `Machine.measured`.
    """

    def __init__(
        self, nodes: Sequence[Node], machine: Machine, placement: Placement,
        decide: Callable[[Mapping[str, float]], Anew | None],
    ) -> None:
        """``decide`` is told ``least`` in the end, and gives the plan from then on."""
        self.nodes = {n.name: n for n in nodes if is_placed(n)}
        self.machine, self.placement, self.decide = machine, placement, decide
        self.least: dict[str, float] = {}
        self._names: dict[str, str] = {}  # of nodes, to those of entries, which take 5 us to make
        self._left = CALLS
        self._lock = locks.Lock()

    def note(self, call_plan: CallPlan, times: Sequence[tuple[str, float]]) -> bool:
        """Enter the microseconds of the steps of a call; whether it was the last one."""
        with self._lock:
            for step, (_, us) in zip(call_plan.steps, times, strict=True):
                name = step.kernel.name if isinstance(step, RunKernel) else step.node.name
                if name in self.nodes:
                    entry, ns = self._measured(self.nodes[name], 1e3 * us)
                    self.least[entry] = min(ns, self.least.get(entry, ns))
            self._left -= 1
            return self._left == 0

    def _measured(self, node: Node, ns: float) -> tuple[str, float]:
        """The entry of `Machine.measured`: of one device, where all cores were one, too."""
        if self.placement.is_divided:
            return self._name(node, self.placement.simulation.devices[node.name]), ns
        home, whole = self.machine.home, self.machine.whole or self.machine.home
        return self._name(node, home), (
            on_cores(ns, whole.cores, home.cores) if node.op == "Fused" else ns)

    def _name(self, node: Node, device: DeviceModel) -> str:
        if node.name not in self._names:
            self._names[node.name] = measured_name(node, device)
        return self._names[node.name]
