"""Whether a graph has to be placed, and the passes with and without that: most need not, and load
no placer."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fusec import config
from fusec.codegen.plan.call_plan import CallPlan, Strides
from fusec.codegen.plan.plan_building import make_plan
from fusec.core.records import replace
from fusec.ir import Graph
from fusec.ir.lazy_values import asked_once
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import PassRecord, run_pipeline

if TYPE_CHECKING:
    from .placed_graph import Placed

_REGISTRY = "fusec.runtime.devices.registry"


def placer_for(graph: Graph, residence: str = "") -> Any:
    """The module that places graphs; None where one device, the only one that is chosen without
    being named, does everything.  ``residence``: see `fusec.trace.call.placement_settings`."""
    if not residence and config.logical_cpu_devices == 1 and not _constrained(graph):
        registry = sys.modules.get(_REGISTRY)  # not loaded: nobody has registered another type
        if registry is None or sum(d.is_automatic for d in registry.devices()) < 2:
            return None
    return importlib.import_module("fusec.placement.placed_graph")


def optimized(
    graph: Graph, options: PassOptions, records: list[PassRecord], residence: str = ""
) -> tuple[Graph, Placed | None]:
    """The graph after the passes, and its placement if there was anything to decide."""
    placer = placer_for(graph, residence)
    if placer is None:
        return run_pipeline(graph, options, records), None
    constrain = partial(placer.constrain, residence=residence)
    fused = run_pipeline(graph, replace(options, constrain=constrain), records)
    return fused, placer.place_on(fused, records, residence)


def plan_of(
    graph: Graph, placed: Placed | None, input_strides: Sequence[Strides],
    output_strides: Sequence[Strides], traced: Graph,
) -> CallPlan:
    """The plan of the result of `optimized`, over the devices that it is placed on."""
    if placed is not None and placed.is_divided:
        call_plan: CallPlan = placed.call_plan(input_strides, output_strides, traced)
        return call_plan
    call_plan = make_plan(graph, input_strides, output_strides, traced)
    call_plan.divide = None if placed is None else placed.divide
    return call_plan


@asked_once
def _constrained(graph: Graph) -> bool:
    """Whether the program says of any node where it is to run."""
    return any(n.device or any(map(_constrained, n.graphs)) for n in graph.nodes)
