"""A fused graph over several devices: placed, divided, and scheduled for each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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

    @property
    def is_divided(self) -> bool:
        """Whether anything runs on another device than the first."""
        return self.placement.is_divided

    @property
    def divide(self) -> Divide:
        """Schedules sub-graphs that several devices have a part in."""
        return divide

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
            self.partition(), input_strides, output_strides, traced, divide)
        schedule.placement, schedule.executable = self.placement, PartitionedExecutable
        return schedule


def divide(
    graph: Graph, input_strides: Sequence[Strides], output_strides: Sequence[Strides]
) -> Schedule | None:
    """The schedule of a fused sub-graph; None where one device, the first, does it all."""
    placed = place_on(graph, [])
    if placed is None or not placed.is_divided:
        return None
    return placed.schedule(input_strides, output_strides, None)


def constrain(graph: Graph) -> Graph:
    """The pass that resolves where nodes are to run, on this machine."""
    return resolve_constraints(graph, machine())


def place_on(fused: Graph, records: list[PassRecord]) -> Placed | None:
    """The graph placed, with a record as of a pass; None where there was nothing to place."""
    start, devices = time.perf_counter(), machine()
    graph, placement = place(fused, devices, _choose.get())
    if placement is None:
        return None
    ms = 1e3 * (time.perf_counter() - start)
    moved = sum(a.device != b.device for a, b in zip(graph.nodes, fused.nodes, strict=True))
    records.append(PassRecord("placement", ms, moved, fused, graph))
    return Placed(graph, devices, placement)


@contextmanager
def choosing(choose: Choose) -> Any:
    """Inside the block this decides where nodes run, of the devices that are feasible: for tests
    of other placements than the compiler's."""
    token = _choose.set(choose)
    try:
        yield
    finally:
        _choose.reset(token)


