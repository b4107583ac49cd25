"""The first calls of a trace that was placed by estimates.

They are slower, because kernels run one by one, and each step is timed; then they are as quick as
they can be.  The graph is placed anew if the times say that another placement would end much
sooner.  That happens once: measured times change with what else the machine does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec.codegen.plan_building import compile_schedule
from fusec.codegen.schedule import KernelStep, Schedule
from fusec.inspect import timeline
from fusec.ir import Node
from fusec.passes.placement.costs import measured_name, on_cores
from fusec.passes.placement.schedule_simulation import is_placed
from fusec.runtime.devices import node_times
from fusec.runtime.executor import Executable

from . import locks
from .records import replace

if TYPE_CHECKING:
    from .concrete_function import ConcreteFunction
    from .placed import Placed
    from .stages import OptimizedStage

CALLS = 5
LEAST_GAIN = 0.2  # of the time: measurements differ by that much
Times = list[tuple[str, float]]


class Trial:
    """The times of a trace's steps in its first calls.  Thread-safe."""

    def __init__(self, optimized: OptimizedStage) -> None:
        stage = optimized.before  # the first call's arrays are not ours to keep
        self.optimized = replace(optimized, before=replace(
            stage, call=replace(stage.call, leaves=())))
        self.least: dict[str, float] = {}  # nanoseconds, as in `Machine.measured`
        self._left = CALLS
        self._lock = locks.Lock()

    @property
    def placed(self) -> Placed:
        assert self.optimized.placed is not None
        return self.optimized.placed

    def run(self, concrete: ConcreteFunction, leaves: Sequence[Any]) -> list[Any]:
        """The result leaves of a call; the last one may change what the next ones run."""
        if timeline.on:  # a profile shows what calls do that nobody measures in this way
            return concrete.executable.run(leaves)
        times: Times = []
        results = concrete.executable.run(leaves, times)
        with self._lock:
            self._left -= 1
            self._note(concrete.build.schedule, times)
            is_last = self._left == 0
        if is_last:
            self._end(concrete)
        return results

    def _note(self, schedule: Schedule, times: Times) -> None:
        nodes = {n.name: n for n in self.placed.fused.nodes if is_placed(n)}
        for step, (_, us) in zip(schedule.steps, times, strict=True):
            node = nodes.get(step.kernel.name if isinstance(step, KernelStep) else step.node.name)
            if node is not None:
                name, ns = self._measured(node, 1e3 * us)
                self.least[name] = min(ns, self.least.get(name, ns))

    def _measured(self, node: Node, ns: float) -> tuple[str, float]:
        """The entry of `Machine.measured`: of one device, where all cores were one, too."""
        machine = self.placed.machine
        if self.placed.is_divided:
            device = self.placed.placement.simulation.devices[node.name]
            return measured_name(node, device), ns
        home, whole = machine.home, machine.whole or machine.home
        return measured_name(node, home), (
            on_cores(ns, whole.cores, home.cores) if node.op == "Fused" else ns)

    def _end(self, concrete: ConcreteFunction) -> None:
        node_times.add(self.placed.devices, self.least)
        from_now = self.placed.again(self.least, LEAST_GAIN)
        if from_now is not None:
            build = concrete.build
            schedule = replace(self.optimized, placed=from_now).schedule()
            compile_schedule(schedule, build.stats)
            kind = schedule.executable or Executable
            concrete.executable = kind(schedule, concrete.executable.spec)
            build.schedule, build.placed = schedule, from_now
        concrete.trial = None
