"""What every mode of loop form shares: the function frame, pointers, expressions, stages.

An expression is emitted by the same code for any number of lanes, so a value's bits do not depend
on where in a loop it falls; the vectorised loop itself is in `axis_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from fusec.codegen.loop_ir import LEAVES, Expr, Stage, Store, walk
from fusec.codegen.specialise import ACROSS, LoopForm
from fusec.ops.scalar_calls import CALLS

from .abi import BlockLayout
from .axis_loop import AxisLoop
from .emitter import I64, Emitter, Operand, memory_type, vector_type
from .indices import (
    FailureFlags,
    check_index,
    load_at,
    load_elements,
    load_valid,
    offset_of,
    verify,
)
from .instructions import select
from .reductions import (
    UNROLL,
    Accumulator,
    accumulate,
    identity_of,
    is_cascaded,
    is_indexed,
    make_accumulator,
    sum_lanes,
)
from .scalar_calls import call_lanes
from .scalar_ops import emit_operation
from .scans import ScanSlots
from .sides import Side, Sides, find_sides

STEP_VECTORS = 4  # the most vectors that one step of a loop takes
MANY_PARTS = 8  # of short axes: each is a vector of its own, so that narrow ones are enough

@dataclass
class Point:
    """Where an expression is evaluated: pointers and counters of the loops around it."""

    lanes: int
    position: str  # counter of the vectorised loop
    pointers: list[str]
    counters: dict[int, str]
    invariant: dict[int, Operand]  # loads done before, which do not move along a loop
    linear: str = "0"  # position within the inner loops, for scratch and argmin
    addresses: dict[int, str] = field(default_factory=dict)  # of operands that may be padding
    strides: dict[int, str] = field(default_factory=dict)  # bytes between lanes of those
    valid: Operand | None = None  # lanes that hold elements, where not all do
    memo: dict[int, Operand] = field(default_factory=dict)


def natural_lanes(form: LoopForm) -> int:
    """Elements per vector: two AVX2 registers of the widest dtype, one where parts are many."""
    sizes = [e.dtype.itemsize for e in walk(form.nest.roots) if e.op != "index"]
    sizes += [o.dtype.itemsize for o in form.operands]
    lanes = {8: 8, 4: 16}.get(max(sizes, default=8), 32)
    parts = sum(form.near_stride(number) != 0 for number in range(len(form.operands)))
    return lanes // 2 if parts >= MANY_PARTS and form.mode == "map" else lanes


class NestEmitter:
    """Emits ``void name(ptr block, i64 begin, i64 end)`` for a form."""

    def __init__(self, form: LoopForm, name: str) -> None:
        self.form, self.name = form, name
        self.layout = BlockLayout.of(form)
        self.em = Emitter()
        self.lanes = natural_lanes(form)
        self.reduced: dict[int, Operand] = {}
        self.scratch: list[str] = []
        self.failures = FailureFlags(self.em)
        self.scans = ScanSlots(self.em, form)
        self.sides = Sides()
        self.sides_of: dict[int, Sides] = {}  # of each stage, by its id

    # -- function frame

    def emit(self) -> Emitter:
        """The finished functions are in ``emitter.functions``."""
        self._function(self.name, self._body)
        return self.em

    def _body(self) -> None:
        """Tasks ``%begin`` to ``%end``; every mode has its own."""
        raise NotImplementedError

    def _function(self, name: str, body: Callable[[], None]) -> None:
        em = self.em
        em.lines, em.allocas = [], []
        self.failures = FailureFlags(em)
        self._load_block()
        body()
        if self.failures.slot:
            self.failures.report(self._slot(self.layout.status, "ptr"),
                                 self._slot(self.layout.record, "ptr"))
        for pointer in self.scratch:
            em.line(f"call void @free(ptr {pointer})")
        self.scratch = []
        em.line("ret void")
        head = f"define void @{name}(ptr %block, i64 %begin, i64 %end) nounwind {{"
        text = "\n".join([head, "entry:", *em.allocas, *em.lines, "}"])
        em.functions[name] = text

    def _slot(self, number: int, kind: str = "i64") -> str:
        pointer = self.em.value(f"getelementptr i64, ptr %block, i64 {number}")
        return self.em.value(f"load {kind}, ptr {pointer}")

    def _load_block(self) -> None:
        layout, form = self.layout, self.form
        self.base = [self._slot(k, "ptr") for k in range(layout.operands)]
        self.extent = [self._slot(layout.extent(loop)) for loop in range(layout.loops)]
        self.stride = [
            [self._slot(layout.stride(k, loop)) for loop in range(layout.loops)]
            for k in range(layout.operands)
        ]
        self.gathered = [
            [self._slot(layout.gathered_stride(k, n)) for n in range(count)]
            for k, count in enumerate(layout.gathered)
        ]
        self.params = [self._param_pointer(n) for n in range(layout.params)]
        self.param_values: dict[int, Operand] = {
            e.attr: self.em.load(self.params[e.attr], e.dtype, 1)
            for e in walk(form.nest.roots) if e.op == "param"
        }

    def _param_pointer(self, number: int) -> str:
        return self.em.value(f"getelementptr i64, ptr %block, i64 {self.layout.param(number)}")

    def _allocate_scratch(self, lanes: int) -> None:
        """Row scratch for this call: one element (or vector of columns) per inner point."""
        em, form = self.em, self.form
        if not form.nest.scratch:
            return
        count = "1"
        for loop in range(form.outer, len(form.extents)):
            count = em.mul(count, self.extent[loop])
        em.declare("declare ptr @malloc(i64)")
        em.declare("declare void @free(ptr)")
        for dtype in form.nest.scratch:
            # One more step: the last one of a row is written whole.
            padded = em.add(count, STEP_VECTORS * self.lanes)
            size = em.mul(padded, dtype.itemsize * lanes)
            self.scratch.append(em.value(f"call ptr @malloc(i64 {size})", "scratch"))

    # -- pointers and counters

    def _decode(self, task: str, loops: Sequence[int]) -> dict[int, str]:
        """Counters of the loops from a linear task number, last loop fastest."""
        em, counters = self.em, {}
        for loop in reversed(loops):
            if loop == loops[0]:
                counters[loop] = task
                break
            counters[loop] = em.value(f"urem i64 {task}, {self.extent[loop]}")
            task = em.value(f"udiv i64 {task}, {self.extent[loop]}")
        return counters

    def _moved(self, pointers: Sequence[str], counters: dict[int, str]) -> list[str]:
        """Pointers advanced by these counters (never along the vectorised loop)."""
        result = []
        for k, pointer in enumerate(pointers):
            for loop, counter in counters.items():
                if self.form.operands[k].strides[loop] != 0:
                    pointer = self.em.offset(pointer, self.em.mul(self.stride[k][loop], counter))
            result.append(pointer)
        return result

    @contextmanager
    def _each(
        self, loops: Sequence[int], pointers: list[str], counters: dict[int, str],
    ) -> Iterator[tuple[list[str], dict[int, str], str]]:
        """Every point of these loops: pointers and counters there, and its linear number."""
        em, linear = self.em, "0"
        with ExitStack() as stack:
            for loop in loops:
                i = stack.enter_context(em.loop(0, self.extent[loop]))
                pointers = self._moved(pointers, {loop: i})
                counters = {**counters, loop: i}
                linear = i if linear == "0" else em.value(
                    f"add i64 {em.mul(linear, self.extent[loop])}, {i}")
            yield pointers, counters, linear

    def _invariants(self, stage: Stage, pointers: Sequence[str]) -> dict[int, Operand]:
        """Load once what does not move along the vectorised loop."""
        em, form = self.em, self.form
        loaded: dict[int, Operand] = {}
        for e in walk(stage.roots):
            if e.op == "load" and not e.args and (
                    form.stride_class(form.operands[e.attr]) == "zero"):
                loaded[e.attr] = em.load(pointers[e.attr], e.dtype, 1)
        return loaded

    # -- expressions

    def _evaluate(self, root: Expr, point: Point, side: Side | None = None) -> Operand:
        """The value of an expression; ``side``: of a select that branches, which is emitted now."""
        for e in walk([root]):
            if id(e) not in point.memo and self.sides.side_of.get(id(e)) == side:
                point.memo[id(e)] = self._expression(e, point)
        return point.memo[id(root)]

    def _branched(self, select: Expr, point: Point) -> Operand:
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

    def _expression(self, e: Expr, point: Point) -> Operand:
        if id(e) in self.sides.selects:
            return self._branched(e, point)
        args = [point.memo[id(a)] for a in e.args]
        if e.op == "check_index":
            return check_index(
                self.em, e.attr, args[0], args[1], point.valid, self.failures)
        if e.op == "verify":
            return verify(self.em, args[0], point.valid, self.failures)
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

    def _leaf(self, e: Expr, point: Point) -> Operand:
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

    def _index(self, loop: int, point: Point) -> Operand:
        if loop < 0:
            return self.em.const(I64, 0)
        if loop == self.form.axis:
            return self.em.iota(point.position, point.lanes)
        return Operand(point.counters[loop], I64, 1)

    def _load(self, number: int, point: Point) -> Operand:
        operand = self.form.operands[number]
        kind = self.form.stride_class(operand)
        if number in point.invariant:
            return point.invariant[number]
        pointer = self._at(number, point)
        if kind == "unit" or point.lanes == 1:
            return self.em.load(pointer, operand.dtype, point.lanes)
        stride = self._axis_stride(number, point)
        return self.em.gather(pointer, stride, operand.dtype, point.lanes)

    def _gathered_load(self, number: int, indices: list[Operand], point: Point) -> Operand:
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

    def _axis_stride(self, number: int, point: Point) -> str:
        near = self.form.near_stride(number)
        if near:
            return str(near)
        return point.strides.get(number) or self.stride[number][self.form.axis]

    def _at(self, number: int, point: Point) -> str:
        """The address of the first lane."""
        if number in point.addresses:
            return point.addresses[number]
        em, operand = self.em, self.form.operands[number]
        pointer = point.pointers[number]
        if self.form.stride_class(operand) == "unit":
            kind = memory_type(operand.dtype)
            return em.value(f"getelementptr {kind}, ptr {pointer}, i64 {point.position}", "p")
        return em.offset(pointer, em.mul(self._axis_stride(number, point), point.position))

    def _scratch_pointer(self, number: int, point: Point) -> str:
        em, size = self.em, self.form.nest.scratch[number].itemsize
        if self.form.mode == "column":
            offset = em.mul(point.linear, size * point.lanes)
        else:
            offset = em.mul(em.value(f"add i64 {point.linear}, {point.position}"), size)
        return em.offset(self.scratch[number], offset)

    # -- one evaluation of a stage

    def _run(self, stage: Stage, point: Point, accs: Sequence[Accumulator], copy: int) -> None:
        em, form = self.em, self.form
        self.sides = self.sides_of.get(id(stage)) or find_sides(stage, self._is_even)
        self.sides_of[id(stage)] = self.sides
        stores = [(s, self._evaluate(s.value, point)) for s in stage.stores]
        places = [[self._evaluate(i, point) for i in s.index] for s in stage.stores]
        scratch = [(n, self._evaluate(e, point)) for n, e in stage.scratch]
        totals = [self._evaluate(r.value, point) for r in stage.reductions]
        for check in stage.checks:
            self._evaluate(check, point)
        for (store, value), where in zip(stores, places, strict=True):
            if where:
                self._store_at(store, where, value, point)
            else:
                self._store(store.access, value, point)
        for number, value in scratch:
            em.store(self._scratch_pointer(number, point), em.splat(value, point.lanes))
        for acc, value in zip(accs, totals, strict=True):
            along = form.mode not in ACROSS
            index = point.linear
            if along and is_indexed(acc.reduction):
                index = em.value(f"add i64 {point.linear}, {point.position}")
            wide = em.splat(value, point.lanes)
            if point.valid is not None:
                neutral = em.const(wide.dtype, identity_of(acc.kind, wide.dtype), point.lanes)
                wide = emit_operation(em, "select", wide.dtype, [point.valid, wide, neutral])
            accumulate(em, acc, wide, copy, index, along)

    def _store(self, number: int, value: Operand, point: Point) -> None:
        em, operand = self.em, self.form.operands[number]
        kind = self.form.stride_class(operand)
        if kind == "zero":
            em.store(point.pointers[number], value)
        elif kind == "unit" or point.lanes == 1:
            em.store(self._at(number, point), em.splat(value, point.lanes))
        else:
            wide = em.splat(value, point.lanes)
            em.scatter(self._at(number, point), self._axis_stride(number, point), wide)

    def _store_at(
        self, store: Store, indices: list[Operand], value: Operand, point: Point
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

    def _can_vectorise(self, stage: Stage) -> bool:
        return all(
            self.form.stride_class(self.form.operands[s.access]) != "zero" for s in stage.stores
        )

    def _accumulators(self, stage: Stage) -> list[Accumulator]:
        """Accumulators for vectors along the reduced axis."""
        lanes = self.lanes if self._can_vectorise(stage) else 1
        copies = self._copies(stage) if lanes > 1 else 1
        return [
            make_accumulator(
                self.em, r, lanes, sum_lanes(r.dtype) // lanes if is_cascaded(r) and lanes > 1
                else copies, cascade=True)
            for r in stage.reductions
        ]

    def _copies(self, stage: Stage) -> int:
        """Vectors per step: as many as the stage's sums have accumulators."""
        sums = [sum_lanes(r.dtype) // self.lanes for r in stage.reductions if is_cascaded(r)]
        return max(sums, default=UNROLL) if stage.reductions else 1

    def _axis_loop(
        self, stage: Stage, low: str, high: str, pointers: list[str], counters: dict[int, str],
        linear: str, accs: Sequence[Accumulator],
    ) -> None:
        """The vectorised loop over ``low`` to ``high``."""
        invariant = self._invariants(stage, pointers)

        def run(lanes: int, position: str, copy: int = 0, **where: Any) -> None:
            here = dict(counters)
            here[self.form.axis] = position
            point = Point(lanes, position, pointers, here, invariant, linear, **where)
            self._run(stage, point, accs, copy)

        AxisLoop(self, stage, pointers, accs, run).emit(low, high)

    def _outer_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        """One scalar evaluation per outer point."""
        invariant = self._invariants(stage, pointers)
        self._run(stage, Point(1, "0", pointers, counters, invariant), (), 0)
