"""A fused graph over several devices: placed, divided, and scheduled for each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from fusec.codegen.partitioned_schedule import PartitionedSchedule, partitioned_schedule
from fusec.codegen.schedule import Divide, Schedule, Strides
from fusec.ir import Graph
from fusec.passes.pipeline import PassRecord
from fusec.passes.placement.constraints import resolve_constraints
from fusec.passes.placement.machine import Machine
from fusec.passes.placement.partition import Partition, partition
from fusec.passes.placement.place import Choose, Placement, place
from fusec.passes.placement.receive_order import order_receives
from fusec.runtime.devices import registry
from fusec.runtime.devices.device import Device
from fusec.runtime.partitions.plan import PartitionedExecutable

from .device_models import machine
from .inspect.placement_report import placement_lines
from .records import dataclass

_choose: ContextVar[Choose | None] = ContextVar("choose", default=None)


@dataclass
class Placed:
    """What placement decided of a graph."""

    graph: Graph
    machine: Machine
    placement: Placement
    devices: Sequence[Device] = ()  # of that machine

    @property
    def is_divided(self) -> bool:
        """Whether anything runs on another device than the first."""
        return self.placement.is_divided

    @property
    def divide(self) -> Divide:
        """Schedules sub-graphs that several devices have a part in, for the same devices: when one
        first runs there may be others."""
        return partial(divide, self.machine, self.devices)

    def lines(self) -> list[str]:
        """Where each node runs and why, and what is sent, for people."""
        return placement_lines(self)

    def partition(self) -> Partition:
        """A graph for each device, receives delayed."""
        parts = partition(self.graph, self.machine)
        return order_receives(parts, self.placement.simulation, self.machine)

    def schedule(
        self, input_strides: Sequence[Strides], output_strides: Sequence[Strides],
        traced: Graph | None,
    ) -> PartitionedSchedule:
        schedule = partitioned_schedule(
            self.partition(), input_strides, output_strides, traced, self.divide)
        schedule.placement, schedule.executable = self.placement, PartitionedExecutable
        schedule.runners = {device.name: device for device in self.devices}
        return schedule


def divide(
    machine: Machine, devices: Sequence[Device], graph: Graph, input_strides: Sequence[Strides],
    output_strides: Sequence[Strides],
) -> Schedule | None:
    """The schedule of a fused sub-graph; None where one device, the first, does it all."""
    placed = _placed(graph, machine, devices, [])
    if placed is None or not placed.is_divided:
        return None
    return placed.schedule(input_strides, output_strides, None)


def constrain(graph: Graph) -> Graph:
    """The pass that resolves where nodes are to run, on this machine."""
    return resolve_constraints(graph, machine())


def place_on(fused: Graph, records: list[PassRecord]) -> Placed | None:
    """The graph placed, with a record as of a pass; None where there was nothing to place."""
    return _placed(fused, machine(), registry.devices(), records)


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
    return Placed(graph, machine, placement, devices)


@contextmanager
def choosing(choose: Choose) -> Any:
    """Inside the block this decides where nodes run, of the devices that are feasible: for tests
    of other placements than the compiler's."""
    token = _choose.set(choose)
    try:
        yield
    finally:
        _choose.reset(token)


