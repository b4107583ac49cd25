"""What every mode of loop form shares: the function frame, pointers, expressions, stages.

The vectorised loop runs over whole vectors and then over single elements; both run the same
operations in the same order, so a value's bits do not depend on where in the loop it falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fusec.codegen.loop_ir import LEAVES, Expr, Stage, walk
from fusec.codegen.scalar_rules import scalar_cost
from fusec.codegen.specialise import LoopForm

from .abi import BlockLayout
from .emitter import BOOL, I64, Emitter, Operand, memory_type
from .reductions import (
    BLOCK_VECTORS,
    UNROLL,
    Accumulator,
    accumulate,
    identity_of,
    is_indexed,
    push_block,
)
from .scalar_ops import emit_operation

# Stages of at least this much scalar work finish with a padded vector instead of a scalar loop.
PADDED_COST = 12.0

@dataclass
class Point:
    """Where an expression is evaluated: pointers and counters of the loops around it."""

    lanes: int
    position: str  # counter of the vectorised loop
    pointers: list[str]
    counters: dict[int, str]
    invariant: dict[int, Operand]  # loads that do not move along the vectorised loop
    linear: str = "0"  # position within the inner loops, for scratch and argmin
    addresses: dict[int, str] = field(default_factory=dict)  # of operands moved to padding
    valid: Operand | None = None  # lanes that hold elements, where not all do
    memo: dict[int, Operand] = field(default_factory=dict)


def natural_lanes(form: LoopForm) -> int:
    """Elements per vector: two AVX2 registers of the widest dtype in the nest."""
    sizes = [e.dtype.itemsize for e in walk(form.nest.roots) if e.op != "index"]
    sizes += [o.dtype.itemsize for o in form.operands]
    return {8: 8, 4: 16}.get(max(sizes, default=8), 32)


class NestEmitter:
    """Emits ``void name(ptr block, i64 begin, i64 end)`` for a form."""

    def __init__(self, form: LoopForm, name: str) -> None:
        self.form, self.name = form, name
        self.layout = BlockLayout.of(form)
        self.em = Emitter()
        self.lanes = natural_lanes(form)
        self.reduced: dict[int, Operand] = {}
        self.scratch: list[str] = []

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
        self._load_block()
        body()
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
            # One more vector: the last one of a row is written whole.
            padded = em.add(count, self.lanes)
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

    def _invariants(self, stage: Stage, pointers: Sequence[str]) -> dict[int, Operand]:
        """Load once what does not move along the vectorised loop."""
        em, form = self.em, self.form
        loaded: dict[int, Operand] = {}
        for e in walk(stage.roots):
            if e.op == "load" and form.stride_class(form.operands[e.attr]) == "zero":
                loaded[e.attr] = em.load(pointers[e.attr], e.dtype, 1)
        return loaded

    # -- expressions

    def _evaluate(self, root: Expr, point: Point) -> Operand:
        for e in walk([root]):
            if id(e) not in point.memo:
                point.memo[id(e)] = self._leaf(e, point) if e.op in LEAVES else emit_operation(
                    self.em, e.op, e.dtype, [point.memo[id(a)] for a in e.args]
                )
        return point.memo[id(root)]

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
        if kind == "zero":
            return point.invariant[number]
        pointer = self._at(number, point)
        if kind == "unit" or point.lanes == 1:
            return self.em.load(pointer, operand.dtype, point.lanes)
        return self.em.gather(pointer, self._axis_stride(number), operand.dtype, point.lanes)

    def _axis_stride(self, number: int) -> str:
        return self.stride[number][self.form.axis]

    def _at(self, number: int, point: Point) -> str:
        """The address of the first lane."""
        if number in point.addresses:
            return point.addresses[number]
        em, operand = self.em, self.form.operands[number]
        pointer = point.pointers[number]
        if self.form.stride_class(operand) == "unit":
            kind = memory_type(operand.dtype)
            return em.value(f"getelementptr {kind}, ptr {pointer}, i64 {point.position}", "p")
        return em.offset(pointer, em.mul(self._axis_stride(number), point.position))

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
        stores = [(s.access, self._evaluate(s.value, point)) for s in stage.stores]
        scratch = [(n, self._evaluate(e, point)) for n, e in stage.scratch]
        totals = [self._evaluate(r.value, point) for r in stage.reductions]
        for number, value in stores:
            self._store(number, value, point)
        for number, value in scratch:
            em.store(self._scratch_pointer(number, point), em.splat(value, point.lanes))
        for acc, value in zip(accs, totals, strict=True):
            along = form.mode != "column"
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
            em.scatter(self._at(number, point), self._axis_stride(number), wide)

    def _can_vectorise(self, stage: Stage) -> bool:
        return all(
            self.form.stride_class(self.form.operands[s.access]) != "zero" for s in stage.stores
        )

    def _axis_loop(
        self, stage: Stage, low: str, high: str, pointers: list[str], counters: dict[int, str],
        linear: str, accs: Sequence[Accumulator],
    ) -> None:
        """The vectorised loop over ``low`` to ``high``: blocks, vectors, then what is left."""
        em = self.em
        invariant = self._invariants(stage, pointers)

        def run(lanes: int, position: str, copy: int = 0, **where: Any) -> None:
            here = dict(counters)
            here[self.form.axis] = position
            point = Point(lanes, position, pointers, here, invariant, linear, **where)
            self._run(stage, point, accs, copy)

        rest = low
        if self._can_vectorise(stage):
            if accs:
                rest = self._unrolled(low, high, accs, run)
            if self._pads(stage):
                self._padded_loop(stage, rest, high, pointers, run)
                return
            whole = self._whole(low, high, self.lanes)
            with em.loop(rest, whole, self.lanes) as i:
                run(self.lanes, i)
            rest = whole
        with em.loop(rest, high) as i:
            run(1, i)

    # -- the last, partial vector

    def _moving(self, stage: Stage) -> tuple[list[int], list[int]]:
        """Operands that the stage loads, and stores, at places that move along the loop."""
        loads = {e.attr for e in walk(stage.roots) if e.op == "load"}
        stores = {s.access for s in stage.stores}
        moving = [k for k, o in enumerate(self.form.operands)
                  if self.form.stride_class(o) != "zero"]
        return [k for k in moving if k in loads], [k for k in moving if k in stores]

    def _pads(self, stage: Stage) -> bool:
        """Whether what is left after whole vectors runs as one padded vector.

        The stage's code then exists once, where a loop over single elements would repeat it; for a
        few instructions the repetition is cheaper than moving operands to padding and back.
        """
        loads, stores = self._moving(stage)
        is_unit = all(
            self.form.stride_class(self.form.operands[k]) == "unit" for k in (*loads, *stores)
        )
        work = sum(scalar_cost(e.op) for e in walk(stage.roots))
        return is_unit and work >= PADDED_COST

    def _padded_loop(
        self, stage: Stage, low: str, high: str, pointers: list[str], run: Callable[..., None]
    ) -> None:
        """Vectors to the end; operands of the last go through stack memory if it is partial."""
        em, lanes = self.em, self.lanes
        loads, stores = self._moving(stage)
        pads = {k: self._padding(k) for k in dict.fromkeys((*loads, *stores))}
        with em.loop(low, high, lanes) as i:
            left = em.value(f"sub i64 {high}, {i}")
            partial = em.value(f"icmp slt i64 {left}, {lanes}")
            real = {k: self._unit_address(k, pointers[k], i) for k in pads}
            with em.branch(partial):
                for k in loads:
                    self._copy(pads[k], real[k], left, k)
            chosen = {
                k: em.value(f"select i1 {partial}, ptr {pads[k]}, ptr {real[k]}") for k in pads
            }
            valid = None
            if stage.reductions:
                ends = em.splat(Operand(left, I64, 1), lanes)
                valid = emit_operation(em, "lt", BOOL, [em.iota("0", lanes), ends])
            run(lanes, i, addresses=chosen, valid=valid)
            if stores:
                with em.branch(partial):
                    for k in stores:
                        self._copy(real[k], pads[k], left, k)

    def _padding(self, number: int) -> str:
        """Zeroed stack memory for one vector of an operand."""
        em, dtype = self.em, self.form.operands[number].dtype
        kind = f"[{self.lanes} x {memory_type(dtype)}]"
        slot = em.alloca(kind, "pad")
        em.line(f"store {kind} zeroinitializer, ptr {slot}")
        return slot

    def _unit_address(self, number: int, pointer: str, position: str) -> str:
        kind = memory_type(self.form.operands[number].dtype)
        return self.em.value(f"getelementptr {kind}, ptr {pointer}, i64 {position}", "p")

    def _copy(self, target: str, source: str, count: str, number: int) -> None:
        em = self.em
        em.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        size = em.mul(count, self.form.operands[number].dtype.itemsize)
        em.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, "
                f"i1 false)")

    def _whole(self, low: str, high: str, step: int) -> str:
        """The end of the last whole step of this many elements; steps are powers of two."""
        count = self.em.value(f"sub i64 {high}, {low}")
        return self.em.add(low, self.em.value(f"and i64 {count}, {-step}"))

    def _unrolled(self, low: str, high: str, accs: Sequence[Accumulator], run: object) -> str:
        """Several vectors per step into separate accumulators, in cascaded blocks."""
        em, step = self.em, self.lanes * UNROLL
        end = self._whole(low, high, step)
        cascaded = [a for a in accs if a.stack]

        def steps(first: str, last: str) -> None:
            with em.loop(first, last, step) as i:
                for copy in range(UNROLL):
                    run(self.lanes, em.add(i, copy * self.lanes), copy)  # type: ignore[operator]

        if not cascaded:
            steps(low, end)
            return end
        block = BLOCK_VECTORS * self.lanes
        with em.loop(low, end, block) as start:
            steps(start, em.minimum(em.add(start, block), end))
            for acc in cascaded:
                push_block(em, acc)
        return end

    def _outer_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        """One scalar evaluation per outer point."""
        invariant = self._invariants(stage, pointers)
        self._run(stage, Point(1, "0", pointers, counters, invariant), (), 0)
