"""A fused graph over several devices: placed, divided, and planned for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from fusec.codegen.plan.call_plan import CallPlan, Divide, Strides
from fusec.codegen.plan.plan_over_devices import PlanOverDevices, plan_over_devices
from fusec.core.records import dataclass, replace
from fusec.ir import Graph
from fusec.passes.pipeline import PassRecord
from fusec.passes.placement.constraints import resolve_constraints
from fusec.passes.placement.machine import Machine
from fusec.passes.placement.partition import Partition, partition
from fusec.passes.placement.place import Choose, Placement, estimate, place
from fusec.passes.placement.receive_order import order_receives
from fusec.runtime.devices import node_times, registry
from fusec.runtime.devices.device import Device
from fusec.runtime.partitions.plan import PartitionedExecutable
from fusec.runtime.remote.runs_over_workers import ExecutableOverWorkers
from fusec.runtime.remote.worker_plans import divide_by_worker

from .device_models import machine
from .placement_report import placement_lines
from .placement_trial import LEAST_GAIN, Anew, Trial

_choose: ContextVar[Choose | None] = ContextVar("choose", default=None)


@dataclass
class Placed:
    """The placement of the graph ``fused``."""

    graph: Graph
    fused: Graph
    machine: Machine
    placement: Placement
    devices: Sequence[Device] = ()  # of that machine
    anew: str = ""  # why it was placed a second time

    @property
    def is_divided(self) -> bool:
        """Whether anything runs on another device than the first."""
        return self.placement.is_divided

    @property
    def divide(self) -> Divide:
        """Plans sub-graphs that several devices have a part in, for the same devices: when one
        first runs there may be others."""
        on_host = replace(self.machine, residence=None)  # where what contains them runs
        return partial(divide, on_host, self.devices)

    def trial(self, planned: Callable[[Placed], CallPlan]) -> Trial | None:
        """The timing of the first calls, where this may have been decided by wrong estimates."""
        def decide(observed: Mapping[str, float]) -> Anew | None:
            node_times.add(self.devices, observed)
            anew = self.again(observed)
            return None if anew is None else (planned(anew), anew)

        return Trial(self.fused.nodes, self.machine, self.placement, decide) if (
            self.placement.is_doubtful) else None

    def again(self, observed: Mapping[str, float]) -> Placed | None:
        """The placement by times that were observed; None where that would not gain enough."""
        known = replace(self.machine, measured={**self.machine.measured, **observed})
        before = estimate(self.fused, known, self.placement)
        graph, placement = place(self.fused, known)
        if placement is None or placement.ns > (1 - LEAST_GAIN) * before:
            return None
        anew = (f"placed anew: {1e-3 * placement.ns:.0f} µs by the times of the first calls, and "
                f"{1e-3 * before:.0f} µs as it was placed by estimates")
        return Placed(graph, self.fused, known, placement, self.devices, anew)

    def lines(self) -> list[str]:
        """Where each node runs and why, and the values sent, for people."""
        return placement_lines(self)

    def partition(self) -> Partition:
        """A graph for each device, receives delayed."""
        parts = partition(self.graph, self.machine)
        return order_receives(parts, self.placement.simulation, self.machine)

    def call_plan(
        self, input_strides: Sequence[Strides], output_strides: Sequence[Strides],
        traced: Graph | None,
    ) -> PlanOverDevices:
        call_plan = plan_over_devices(
            self.partition(), input_strides, output_strides, traced, self.divide)
        call_plan.placement, call_plan.executable = self.placement, PartitionedExecutable
        call_plan.runners = {device.name: device for device in self.devices}
        if any(call_plan.runners[name].is_remote for name in call_plan.devices):
            divide_by_worker(call_plan)
            call_plan.executable = ExecutableOverWorkers
        return call_plan


def divide(
    machine: Machine, devices: Sequence[Device], graph: Graph, input_strides: Sequence[Strides],
    output_strides: Sequence[Strides],
) -> CallPlan | None:
    """The plan of a fused sub-graph; None where one device, the first, does it all."""
    placed = _placed(graph, machine, devices, [])
    if placed is None or not placed.is_divided:
        return None
    return placed.call_plan(input_strides, output_strides, None)


def constrain(graph: Graph, residence: str = "") -> Graph:
    """The pass that resolves where nodes are to run, on this machine."""
    return resolve_constraints(graph, machine().residing(residence))


def place_on(fused: Graph, records: list[PassRecord], residence: str = "") -> Placed | None:
    """The graph placed, with a record as of a pass; None where there was nothing to place."""
    return _placed(fused, machine().residing(residence), registry.devices(), records)


def _placed(
    fused: Graph, machine: Machine, devices: Sequence[Device], records: list[PassRecord]
) -> Placed | None:
    start = time.perf_counter()
    graph, placement = place(fused, machine, _choose.get())
    if placement is None:
        return None
    ms = 1e3 * (time.perf_counter() - start)
    moved = sum(a.device != b.device for a, b in zip(graph.nodes, fused.nodes, strict=True))
    records.append(PassRecord("placement", ms, fused, graph, moved))
    return Placed(graph, fused, machine, placement, devices)


@contextmanager
def choosing(choose: Choose) -> Any:
    """Inside the block this decides where nodes run, of the devices that are feasible: for tests
    of other placements than the compiler's."""
    token = _choose.set(choose)
    try:
        yield
    finally:
        _choose.reset(token)


