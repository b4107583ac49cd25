"""Expressions of a nest: values of a stage at a point of its loops.

An expression is emitted by the same code for any number of lanes, so a value's bits do not depend
on where in a loop it falls; the vectorised loop itself is in `axis_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.core.records import dataclass, field, replace
from fusec.ops.calls.scalar_calls import CALLS

from ...kernels.loop_ir import LEAVES, Expr, Stage, walk
from ...kernels.specialise import LoopForm
from ..emitter import I64, LlvmValue, memory_type, vector_type
from ..scalars.instructions import select
from ..scalars.scalar_calls import call_lanes
from ..scalars.scalar_ops import emit_operation
from .indices import check_index, load_at, load_elements, load_valid, offset_of, verify
from .nest_function import NestFunction
from .scan_slots import ScanSlots
from .sides import Side, Sides

# Evaluated where they stand: they report, call, keep a state, or look elements up.
_IN_PLACE = frozenset({*CALLS, "check_index", "verify", "scan", "load"})


@dataclass
class LanePoint:
    """Where an expression is evaluated: pointers and counters of the loops around it."""

    lanes: int
    position: str  # counter of the vectorised loop
    pointers: list[str]
    counters: dict[int, str]
    invariant: dict[int, LlvmValue]  # loads done before, which do not move along a loop
    linear: str = "0"  # position within the inner loops, for scratch and argmin
    addresses: dict[int, str] = field(default_factory=dict)  # of operands that may be padding
    strides: dict[int, str] = field(default_factory=dict)  # bytes between lanes of those
    valid: LlvmValue | None = None  # lanes that hold elements, where not all do
    memo: dict[int, LlvmValue] = field(default_factory=dict)


class ExpressionEmitter(NestFunction):
    """Evaluates the expressions of a form's stages."""

    def __init__(self, form: LoopForm, name: str) -> None:
        super().__init__(form, name)
        self.reduced: dict[int, LlvmValue] = {}
        self.scans = ScanSlots(self.em, form)
        self.sides = Sides()

    def _invariants(self, stage: Stage, pointers: Sequence[str]) -> dict[int, LlvmValue]:
        """Load once the operands that do not move along the vectorised loop."""
        em, form = self.em, self.form
        loaded: dict[int, LlvmValue] = {}
        for e in walk(stage.roots):
            if e.op == "load" and not e.args and (
                    form.stride_class(form.operands[e.attr]) == "zero"):
                loaded[e.attr] = em.load(pointers[e.attr], e.dtype, 1)
        return loaded

    def _computed_before(self, stage: Stage, loaded: dict[int, LlvmValue]) -> dict[int, LlvmValue]:
        """Values computed of these loads and of constants alone, by the ids of expressions."""
        found: dict[int, LlvmValue] = {}
        here = LanePoint(1, "0", [], {}, loaded)
        for e in walk(stage.roots):
            if e.op in LEAVES:
                if e.op in ("const", "param") or (e.op == "load" and e.attr in loaded):
                    found[id(e)] = self._leaf(e, here)
            elif all(id(a) in found for a in e.args) and e.op not in _IN_PLACE and (
                    id(e) not in self.sides.selects and id(e) not in self.sides.side_of):
                start, args = len(self.em.lines), [found[id(a)] for a in e.args]
                found[id(e)] = emit_operation(self.em, e.op, e.dtype, args)
                self.em.note(start, e)
        return found

    def _evaluate(self, root: Expr, point: LanePoint, side: Side | None = None) -> LlvmValue:
        """The value of an expression; ``side``: of a select that branches, which is emitted now."""
        for e in walk([root]):
            if id(e) not in point.memo and self.sides.side_of.get(id(e)) == side:
                start = len(self.em.lines)
                point.memo[id(e)] = self._expression(e, point)
                self.em.note(start, e)
        return point.memo[id(root)]

    def _branched(self, select: Expr, point: LanePoint) -> LlvmValue:
        """A select whose test is one value: only the side taken is computed."""
        em, lanes = self.em, point.lanes
        test = point.memo[id(select.args[0])].text
        slot = em.alloca(vector_type(memory_type(select.dtype), lanes), "chosen")
        for number in (1, 2):
            taken = test if number == 1 else em.value(f"xor i1 {test}, true")
            with em.branch(taken):
                inside = replace(point, memo=dict(point.memo))
                value = self._evaluate(select.args[number], inside, (id(select), number))
                em.store(slot, em.splat(value, lanes))
        return em.load(slot, select.dtype, lanes)

    def _is_even(self, leaf: Expr) -> bool:
        """Whether a leaf is one value along the vectorised loop."""
        return leaf.op in ("const", "param") or (
            leaf.op == "load" and self.form.stride_class(self.form.operands[leaf.attr]) == "zero")

    def _expression(self, e: Expr, point: LanePoint) -> LlvmValue:
        if id(e) in self.sides.selects:
            return self._branched(e, point)
        args = [point.memo[id(a)] for a in e.args]
        if e.op == "check_index":
            return check_index(
                self.em, e.attr, args[0], args[1], point.valid, self.failures)
        if e.op == "verify":
            return verify(self.em, e.attr, args[0], point.valid, self.failures)
        if e.op in CALLS:
            lanes = max((a.lanes for a in args), default=1)
            return call_lanes(self.em, e, args, lanes, point.valid if lanes > 1 else None,
                              self.failures)
        if e.op == "scan":
            return self.scans.step(e, self.em.splat(args[0], point.lanes))
        if e.op == "load" and e.args:
            return self._gathered_load(e.attr, args, point)
        return self._leaf(e, point) if e.op in LEAVES else emit_operation(
            self.em, e.op, e.dtype, args)

    def _leaf(self, e: Expr, point: LanePoint) -> LlvmValue:
        em = self.em
        if e.op == "const":
            return em.const(e.dtype, e.attr)
        if e.op == "param":
            return self.param_values[e.attr]
        if e.op == "reduced":
            return self.reduced[e.attr]
        if e.op == "scratch":
            return em.load(self._scratch_pointer(e.attr, point), e.dtype, point.lanes)
        if e.op == "index":
            return self._index(self.form.loop_of[e.attr], point)
        return self._load(e.attr, point)

    def _index(self, loop: int, point: LanePoint) -> LlvmValue:
        if loop < 0:
            return self.em.const(I64, 0)
        if loop == self.form.axis:
            return self.em.iota(point.position, point.lanes)
        return LlvmValue(point.counters[loop], I64, 1)

    def _load(self, number: int, point: LanePoint) -> LlvmValue:
        operand = self.form.operands[number]
        kind = self.form.stride_class(operand)
        if number in point.invariant:
            return point.invariant[number]
        pointer = self._at(number, point)
        if kind == "unit" or point.lanes == 1:
            padded = number in point.addresses
            valid = None if padded else point.valid
            return load_valid(self.em, pointer, operand.dtype, point.lanes, valid)
        stride = self._axis_stride(number, point)
        return self.em.gather(pointer, stride, operand.dtype, point.lanes)

    def _gathered_load(self, number: int, indices: list[LlvmValue], point: LanePoint) -> LlvmValue:
        """Elements at computed indices, which may also move along the vectorised loop."""
        em, operand = self.em, self.form.operands[number]
        kind, pointer = self.form.stride_class(operand), point.pointers[number]
        parts = list(zip(indices, self.gathered[number], strict=True))
        lanes = max(i.lanes for i in indices)
        if kind == "unit" and lanes == 1:
            pointer = em.offset(pointer, offset_of(em, parts))
            pointer = em.offset(pointer, em.mul(point.position, operand.dtype.itemsize))
            return load_valid(em, pointer, operand.dtype, point.lanes, point.valid)
        if kind == "zero" and operand.is_contiguous_gather:
            return load_elements(em, pointer, indices[0], operand.dtype)
        if kind == "zero":
            return load_at(em, pointer, parts, operand.dtype)
        steps = em.iota(point.position, point.lanes)
        if point.valid is not None and point.lanes > 1:
            steps = select(em, point.valid, steps,
                           em.const(I64, 0, point.lanes))
        parts.append((steps, self.stride[number][self.form.axis]))
        return load_at(em, pointer, parts, operand.dtype)

    def _axis_stride(self, number: int, point: LanePoint) -> str:
        near = self.form.near_stride(number)
        if near:
            return str(near)
        return point.strides.get(number) or self.stride[number][self.form.axis]

    def _at(self, number: int, point: LanePoint) -> str:
        """The address of the first lane."""
        if number in point.addresses:
            return point.addresses[number]
        em, operand = self.em, self.form.operands[number]
        pointer = point.pointers[number]
        if self.form.stride_class(operand) == "unit":
            kind = memory_type(operand.dtype)
            return em.value(f"getelementptr {kind}, ptr {pointer}, i64 {point.position}", "p")
        return em.offset(pointer, em.mul(self._axis_stride(number, point), point.position))

    def _scratch_pointer(self, number: int, point: LanePoint) -> str:
        em, size = self.em, self.form.nest.scratch[number].itemsize
        if self.form.mode == "column":
            offset = em.mul(point.linear, size * point.lanes)
        else:
            offset = em.mul(em.value(f"add i64 {point.linear}, {point.position}"), size)
        return em.offset(self.scratch[number], offset)
