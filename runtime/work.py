"""How long a nest takes, roughly: enough to decide on threads."""

from __future__ import annotations

import math

from fusec.codegen.loop_ir import walk
from fusec.codegen.scalar_rules import scalar_cost
from fusec.codegen.specialise import MAP_BLOCK, LoopForm

NS_PER_OPERATION = 0.15  # one vectorised addition, measured with operands in cache
NS_PER_OPERAND = 0.4  # one element loaded or stored
GRAIN_NS = 20_000.0  # work one thread takes at a time: well above the cost of taking it


def grain_of(form: LoopForm, tasks: int, work: float, threshold: float) -> int:
    """How many tasks a thread takes at a time; all of them where one thread does the nest."""
    nest = form.nest
    in_order = nest.sequential and (not nest.chunk or len(form.extents) > 1)
    if work < threshold or tasks <= 1 or in_order:
        return max(tasks, 1)
    grain = max(1, math.ceil(tasks * GRAIN_NS / work))
    together = max(1, nest.chunk // MAP_BLOCK)
    return min(-(-grain // together) * together, tasks)


def work_ns(form: LoopForm) -> float:
    """A rough estimate of a nest's time on one thread."""
    operations = sum(scalar_cost(e.op) for e in walk(form.nest.roots))
    per_point = NS_PER_OPERATION * operations + NS_PER_OPERAND * len(form.operands)
    return per_point * form.points
