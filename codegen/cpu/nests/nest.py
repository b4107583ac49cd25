"""The common part of all modes of loop forms: the stages of a nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...kernels.loop_ir import Expr, Reduction, Stage, Store, expr
from ...kernels.specialise import ACROSS, LoopForm
from ..emitter import LlvmValue
from ..scalars.scalar_ops import emit_operation
from .accumulators import (
    Accumulator,
    accumulate,
    identity_of,
    is_cascaded,
    is_indexed,
    make_accumulator,
    sum_lanes,
)
from .axis_loop import AxisLoop, can_vectorise, vectors_per_step
from .indices import offset_of
from .nest_expressions import ExpressionEmitter, LanePoint
from .sides import Sides, find_sides


class NestEmitter(ExpressionEmitter):
    """Runs the stages of a form, in the loops of its mode."""

    def __init__(self, form: LoopForm, name: str) -> None:
        super().__init__(form, name)
        self.sides_of: dict[int, Sides] = {}  # of each stage, by its id

    def _run(self, stage: Stage, point: LanePoint, accs: Sequence[Accumulator], copy: int) -> None:
        em, form = self.em, self.form
        self._find_sides(stage)
        stores = [(s, self._evaluate(s.value, point)) for s in stage.stores]
        places = [[self._evaluate(i, point) for i in s.index] for s in stage.stores]
        scratch = [(n, self._evaluate(e, point)) for n, e in stage.scratch]
        totals = [self._evaluate(r.value, point) for r in stage.reductions]
        for check in stage.checks:
            self._evaluate(check, point)
        for (store, value), where in zip(stores, places, strict=True):
            start = len(em.lines)
            if where:
                self._store_at(store, where, value, point)
            else:
                self._store(store, value, point)
            em.note(start, store.value)
        for number, value in scratch:
            em.store(self._scratch_pointer(number, point), em.splat(value, point.lanes))
        for acc, value in zip(accs, totals, strict=True):
            along = form.mode not in ACROSS
            index = point.linear
            if along and is_indexed(acc.reduction):
                index = em.value(f"add i64 {point.linear}, {point.position}")
            wide = em.splat(value, point.lanes)
            if point.valid is not None and not self._is_neutral(acc.reduction, point):
                neutral = em.const(wide.dtype, identity_of(acc.kind, wide.dtype), point.lanes)
                wide = emit_operation(em, "select", wide.dtype, [point.valid, wide, neutral])
            start = len(em.lines)
            accumulate(em, acc, wide, copy, index, along)
            em.note(start, expr("reduced", acc.reduction.dtype, attr=acc.reduction.number))

    def _is_neutral(self, reduction: Reduction, point: LanePoint) -> bool:
        """Whether absent elements add 0 as they are: masks read 0, and products of those are 0."""
        def is_zero(e: Expr) -> bool:
            if e.op == "load":
                return not e.args and e.attr not in point.addresses and (
                    self.form.stride_class(self.form.operands[e.attr]) == "unit")
            return e.op == "mul" and all(map(is_zero, e.args))

        return reduction.kind == "add" and is_zero(reduction.value)

    def _find_sides(self, stage: Stage) -> None:
        self.sides = self.sides_of.get(id(stage)) or find_sides(stage, self._is_even)
        self.sides_of[id(stage)] = self.sides

    def _store(self, store: Store, value: LlvmValue, point: LanePoint) -> None:
        em, number, operand = self.em, store.access, self.form.operands[store.access]
        kind = self.form.stride_class(operand)
        if kind == "zero":
            if store.combine:  # of a sum in parts
                old = em.load(point.pointers[number], operand.dtype, 1)
                value = emit_operation(em, store.combine, operand.dtype, [old, value])
            em.store(point.pointers[number], value)
        elif kind == "unit" or point.lanes == 1:
            em.store(self._at(number, point), em.splat(value, point.lanes))
        else:
            wide = em.splat(value, point.lanes)
            em.scatter(self._at(number, point), self._axis_stride(number, point), wide)

    def _store_at(
        self, store: Store, indices: list[LlvmValue], value: LlvmValue, point: LanePoint
    ) -> None:
        """At computed indices: neighbours as a vector, else lane after lane."""
        em, number = self.em, store.access
        operand, pointer = self.form.operands[number], point.pointers[number]
        kind = self.form.stride_class(operand)
        parts = list(zip(indices, self.gathered[number], strict=True))
        together = kind == "unit" and all(index.lanes == 1 for index in indices)
        if kind != "zero":
            steps = em.iota(point.position, 1 if together else point.lanes)
            parts.append((steps, self.stride[number][self.form.axis]))
        wide = em.splat(value, point.lanes)
        lanes = [wide] if together or wide.lanes == 1 else [
            em.lane(wide, k) for k in range(wide.lanes)]
        for k, part in enumerate(lanes):
            place = em.offset(pointer, offset_of(em, parts, k))
            if store.combine:
                old = em.load(place, operand.dtype, part.lanes)
                part = emit_operation(em, store.combine, operand.dtype, [old, part])
            em.store(place, part)

    def _accumulators(self, stage: Stage) -> list[Accumulator]:
        """Accumulators for vectors along the reduced axis."""
        lanes = self.lanes if can_vectorise(self.form, stage) else 1
        copies = vectors_per_step(stage, self.lanes) if lanes > 1 else 1
        return [
            make_accumulator(
                self.em, r, lanes, sum_lanes(r.dtype) // lanes if is_cascaded(r) and lanes > 1
                else copies, cascade=True)
            for r in stage.reductions
        ]

    def _axis_loop(
        self, stage: Stage, low: str, high: str, pointers: list[str], counters: dict[int, str],
        linear: str, accs: Sequence[Accumulator],
    ) -> None:
        """The vectorised loop over ``low`` to ``high``."""
        run = self._evaluation(stage, pointers, counters, linear, accs)
        AxisLoop(self, stage, pointers, accs, run).emit(low, high)

    def _evaluation(
        self, stage: Stage, pointers: list[str], counters: dict[int, str], linear: str,
        accs: Sequence[Accumulator],
    ) -> Callable[..., None]:
        """The emitter of the stage at a position of the vectorised loop."""
        invariant = self._invariants(stage, pointers)
        self._find_sides(stage)
        computed = self._computed_before(stage, invariant)

        def run(lanes: int, position: str, copy: int = 0, **where: Any) -> None:
            here = dict(counters)
            here[self.form.axis] = position
            point = LanePoint(lanes, position, pointers, here, invariant, linear,
                              memo=dict(computed), **where)
            self._run(stage, point, accs, copy)

        return run

    def _outer_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        """One scalar evaluation per outer point."""
        invariant = self._invariants(stage, pointers)
        self._run(stage, LanePoint(1, "0", pointers, counters, invariant), (), 0)
