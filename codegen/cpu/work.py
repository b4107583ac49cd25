"""How long a nest takes on one thread, roughly: enough to decide on threads."""

from __future__ import annotations

from fusec.ir.lazy_values import asked_once

from ..kernels.loop_ir import Nest, walk
from ..kernels.scalar_rules import scalar_cost
from ..kernels.specialise import LoopForm

NS_PER_OPERATION = 0.15  # one vectorised addition, measured with operands in cache
NS_PER_OPERAND = 0.4  # one element loaded or stored


def point_ns(form: LoopForm) -> float:
    """A rough estimate of the time of one of the nest's points."""
    return NS_PER_OPERATION * _operations(form.nest) + NS_PER_OPERAND * len(form.operands)


@asked_once
def _operations(nest: Nest) -> float:
    return sum(scalar_cost(e.op) for e in walk(nest.roots))
