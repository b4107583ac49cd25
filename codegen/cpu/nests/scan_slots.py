"""Scans: an accumulator whose every step is a value.

Across the vectorised axis each lane has its own; along it the lanes of a vector are combined one
after another, which keeps NumPy's sequential order while producers and consumers stay vectors.
"""

from __future__ import annotations

from fusec.core.records import dataclass, field
from fusec.ops import get
from fusec.ops.rows.scans import start_of

from ...kernels.loop_ir import Expr, Stage, walk
from ...kernels.scalar_rules import boolean_op
from ...kernels.specialise import LoopForm
from ..emitter import BOOL, LlvmEmitter, LlvmValue, scalar_type, vector_type
from ..scalars.scalar_ops import emit_operation


@dataclass
class ScanSlots:
    """Stack memory of the scans of the stage being emitted."""

    em: LlvmEmitter
    form: LoopForm
    slots: dict[int, str] = field(default_factory=dict)

    def start(self, stage: Stage, lanes: int) -> None:
        """Set every scan of the stage to its start."""
        for e in walk(stage.roots):
            if e.op == "scan":
                slot = self.em.alloca(_type(e, lanes), "scan")
                start = self.em.const(e.dtype, start_of(e.attr, e.dtype), lanes)
                self.em.line(f"store {start}, ptr {slot}")
                self.slots[id(e)] = slot

    def step(self, e: Expr, value: LlvmValue) -> LlvmValue:
        """The scan at these elements."""
        if self.form.mode == "column" or value.lanes == 1:
            return self._combine(e, value)
        text = "poison"
        for k in range(value.lanes):
            one = self._combine(e, self.em.lane(value, k))
            text = self.em.value(f"insertelement {value.type} {text}, {one}, i64 {k}")
        return LlvmValue(text, e.dtype, value.lanes)

    def _combine(self, e: Expr, value: LlvmValue) -> LlvmValue:
        em, slot = self.em, self.slots[id(e)]
        old = LlvmValue(em.value(f"load {value.type}, ptr {slot}"), e.dtype, value.lanes)
        scalar = get(e.attr).scalar or ""
        op = boolean_op(scalar) if e.dtype == BOOL else scalar
        new = emit_operation(em, op, e.dtype, [old, value])
        em.line(f"store {new}, ptr {slot}")
        return new


def _type(e: Expr, lanes: int) -> str:
    return vector_type(scalar_type(e.dtype), lanes)
