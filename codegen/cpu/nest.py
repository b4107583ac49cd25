"""One loop form as an LLVM function (two for full reductions): loops, pointers, stages.

The vectorised loop runs over whole vectors and then over single elements; both run the same
operations in the same order, so a value's bits do not depend on where in the loop it falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fusec.codegen.loop_ir import LEAVES, Expr, Reduction, Stage, walk
from fusec.codegen.specialise import COLUMN_BLOCK, FLAT_BLOCK, MAP_BLOCK, LoopForm

from .abi import BlockLayout
from .emitter import I64, Emitter, Operand, memory_type
from .reductions import (
    BLOCK_VECTORS,
    UNROLL,
    Accumulator,
    accumulate,
    combine_pairs,
    finish,
    finish_lanes,
    is_indexed,
    make_accumulator,
    push_block,
)
from .scalar_ops import emit_operation

# A column pass this cheap keeps four vectors of columns in flight at once.
CHEAP_OPERATIONS = 6


@dataclass
class Point:
    """Where an expression is evaluated: pointers and counters of the loops around it."""

    lanes: int
    position: str  # counter of the vectorised loop
    pointers: list[str]
    counters: dict[int, str]
    invariant: dict[int, Operand]  # loads that do not move along the vectorised loop
    linear: str = "0"  # position within the inner loops, for scratch and argmin
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
        body = {"map": self._map, "row": self._row, "column": self._column, "flat": self._flat}
        self._function(self.name, body[self.form.mode])
        if self.form.mode == "flat":
            self.reduced.clear()
            self._function(self.name + ".finish", self._flat_finish)
        return self.em

    def _function(self, name: str, body: object) -> None:
        em = self.em
        em.lines, em.allocas = [], []
        self._load_block()
        body()  # type: ignore[operator]
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
            size = em.mul(count, dtype.itemsize * lanes)
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
            accumulate(em, acc, em.splat(value, point.lanes), copy, index, along)

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
        """The vectorised loop over ``low`` to ``high``: blocks, vectors, then single elements."""
        em = self.em
        invariant = self._invariants(stage, pointers)

        def run(lanes: int, position: str, copy: int = 0) -> None:
            here = dict(counters)
            here[self.form.axis] = position
            point = Point(lanes, position, pointers, here, invariant, linear)
            self._run(stage, point, accs, copy)

        rest = low
        if self._can_vectorise(stage):
            if accs:
                rest = self._unrolled(low, high, accs, run)
            whole = self._whole(low, high, self.lanes)
            with em.loop(rest, whole, self.lanes) as i:
                run(self.lanes, i)
            rest = whole
        with em.loop(rest, high) as i:
            run(1, i)

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

    # -- elementwise nests

    def _map(self) -> None:
        em, form = self.em, self.form
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        extent = self.extent[form.axis]
        (stage,) = form.nest.stages
        blocks = em.value(f"udiv i64 {em.add(extent, MAP_BLOCK - 1)}, {MAP_BLOCK}")
        with em.loop("%begin", "%end") as task:
            low = "0"
            if loops:
                block = em.value(f"urem i64 {task}, {blocks}")
                task = em.value(f"udiv i64 {task}, {blocks}")
            else:
                block = task
            low = em.mul(block, MAP_BLOCK)
            high = em.minimum(em.add(low, MAP_BLOCK), extent)
            counters = self._decode(task, loops)
            pointers = self._moved(self.base, counters)
            self._axis_loop(stage, low, high, pointers, counters, "0", ())

    # -- reductions over inner loops

    def _row(self) -> None:
        em, form = self.em, self.form
        self._allocate_scratch(1)
        outer = list(range(form.outer))
        with em.loop("%begin", "%end") as task:
            counters = self._decode(task, outer) if outer else {}
            pointers = self._moved(self.base, counters)
            for stage in form.nest.stages:
                if stage.inner:
                    self._row_stage(stage, pointers, counters)
                else:
                    self._outer_stage(stage, pointers, counters)

    def _row_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        accs = [
            make_accumulator(self.em, r, self.lanes, UNROLL, cascade=True)
            for r in stage.reductions
        ]
        self._inner_loops(
            list(range(self.form.outer, self.form.axis)), stage, pointers, counters, "0", accs
        )
        for acc in accs:
            value, where = finish(self.em, acc)
            self.reduced[acc.reduction.number] = value if where is None else where

    def _inner_loops(
        self, loops: list[int], stage: Stage, pointers: list[str], counters: dict[int, str],
        linear: str, accs: Sequence[Accumulator],
    ) -> None:
        """The inner loops outside the vectorised one, then the vectorised one."""
        em = self.em
        if not loops:
            extent = self.extent[self.form.axis]
            base = linear if linear == "0" else em.mul(linear, extent)
            self._axis_loop(stage, "0", extent, pointers, counters, base, accs)
            return
        first, *others = loops
        with em.loop(0, self.extent[first]) as i:
            moved = self._moved(pointers, {first: i})
            step = i if linear == "0" else em.value(
                f"add i64 {em.mul(linear, self.extent[first])}, {i}"
            )
            self._inner_loops(others, stage, moved, {**counters, first: i}, step, accs)

    def _outer_stage(self, stage: Stage, pointers: list[str], counters: dict[int, str]) -> None:
        """One scalar evaluation per outer point."""
        invariant = self._invariants(stage, pointers)
        self._run(stage, Point(1, "0", pointers, counters, invariant), (), 0)

    # -- reductions with vectors across them

    def _column(self) -> None:
        em, form = self.em, self.form
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        widest = max(self._column_widths())
        self._allocate_scratch(widest)
        extent = self.extent[form.axis]
        blocks = em.value(f"udiv i64 {em.add(extent, COLUMN_BLOCK - 1)}, {COLUMN_BLOCK}")
        with em.loop("%begin", "%end") as task:
            block = em.value(f"urem i64 {task}, {blocks}")
            counters = self._decode(em.value(f"udiv i64 {task}, {blocks}"), loops)
            pointers = self._moved(self.base, counters)
            low = em.mul(block, COLUMN_BLOCK)
            high = em.minimum(em.add(low, COLUMN_BLOCK), extent)
            for width in self._column_widths():
                whole = high if width == 1 else self._whole(low, high, width)
                with em.loop(low, whole, width) as column:
                    self._columns(width, column, pointers, counters)
                low = whole

    def _column_widths(self) -> list[int]:
        form = self.form
        if any(not self._can_vectorise(s) for s in form.nest.stages):
            return [1]
        operations = sum(1 for e in walk(form.nest.roots) if e.op not in LEAVES)
        wide = [4 * self.lanes] if operations <= CHEAP_OPERATIONS and self.lanes <= 16 else []
        return [*wide, self.lanes, 1]

    def _columns(
        self, width: int, column: str, pointers: list[str], counters: dict[int, str]
    ) -> None:
        em, form = self.em, self.form
        for stage in form.nest.stages:
            accs = [make_accumulator(em, r, width, 1, cascade=False) for r in stage.reductions]
            loops = list(range(form.outer, len(form.extents))) if stage.inner else []
            self._column_loops(loops, stage, width, column, pointers, counters, "0", accs)
            for acc in accs:
                self.reduced[acc.reduction.number] = finish_lanes(em, acc)

    def _column_loops(
        self, loops: list[int], stage: Stage, width: int, column: str, pointers: list[str],
        counters: dict[int, str], linear: str, accs: Sequence[Accumulator],
    ) -> None:
        em = self.em
        if not loops:
            here = {**counters, self.form.axis: column}
            invariant = self._invariants(stage, pointers)
            point = Point(width, column, pointers, here, invariant, linear)
            self._run(stage, point, accs, 0)
            return
        first, *others = loops
        with em.loop(0, self.extent[first]) as i:
            moved = self._moved(pointers, {first: i})
            step = i if linear == "0" else em.value(
                f"add i64 {em.mul(linear, self.extent[first])}, {i}"
            )
            self._column_loops(
                others, stage, width, column, moved, {**counters, first: i}, step, accs
            )

    # -- full reductions

    def _inner_stage(self) -> Stage:
        (stage,) = [s for s in self.form.nest.stages if s.inner]
        return stage

    def _flat(self) -> None:
        """Each task reduces a fixed piece of the domain to one partial result per reduction."""
        em, form = self.em, self.form
        stage, extent = self._inner_stage(), self.extent[form.axis]
        loops = list(range(form.axis))
        chunks, rows_per_task, rows = self._flat_split(loops)
        with em.loop("%begin", "%end") as task:
            accs = [
                make_accumulator(em, r, self.lanes, UNROLL, cascade=True)
                for r in stage.reductions
            ]
            chunk = em.value(f"urem i64 {task}, {chunks}")
            group = em.value(f"udiv i64 {task}, {chunks}")
            low = em.mul(chunk, FLAT_BLOCK)
            high = em.minimum(em.add(low, FLAT_BLOCK), extent)
            first = em.mul(group, rows_per_task)
            last = em.minimum(em.value(f"add i64 {first}, {rows_per_task}"), rows)
            with em.loop(first, last) as row:
                counters = self._decode(row, loops) if loops else {}
                pointers = self._moved(self.base, counters)
                linear = em.mul(row, extent) if loops else "0"
                self._axis_loop(stage, low, high, pointers, counters, linear, accs)
            for acc in accs:
                self._store_partial(acc, task)

    def _flat_split(self, loops: list[int]) -> tuple[str, str, str]:
        """(chunks of the last loop, rows per task, rows): the same rule as `LoopForm`."""
        em, extent = self.em, self.extent[self.form.axis]
        chunks = em.value(f"udiv i64 {em.add(extent, FLAT_BLOCK - 1)}, {FLAT_BLOCK}")
        chunks = em.intrinsic("umax", I64, 1, Operand(chunks, I64, 1), em.const(I64, 1)).text
        some = em.intrinsic("umax", I64, 1, Operand(extent, I64, 1), em.const(I64, 1)).text
        fit = em.value(f"udiv i64 {FLAT_BLOCK}, {some}")
        rows_per_task = em.intrinsic("umax", I64, 1, Operand(fit, I64, 1), em.const(I64, 1)).text
        rows = "1"
        for loop in loops:
            rows = em.mul(rows, self.extent[loop])
        return chunks, rows_per_task, rows

    def _partial(self, position: int, task: str, half: int) -> str:
        """Address of a partial result: 16 bytes per task and reduction (value, position)."""
        em = self.em
        table = self._slot(self.layout.partial_results, "ptr")
        count = len(self._inner_stage().reductions)
        index = em.value(f"add i64 {em.mul(task, count)}, {position}")
        return em.offset(table, em.add(em.mul(index, 16), 8 * half))

    def _store_partial(self, acc: Accumulator, task: str) -> None:
        position = self._position(acc.reduction)
        value, where = finish(self.em, acc)
        self.em.store(self._partial(position, task, 0), value)
        if where is not None:
            self.em.store(self._partial(position, task, 1), where)

    def _position(self, reduction: Reduction) -> int:
        return self._inner_stage().reductions.index(reduction)

    def _flat_finish(self) -> None:
        """Combine the partial results pairwise in task order, then run the outer stages."""
        em = self.em
        for reduction in self._inner_stage().reductions:
            self.reduced[reduction.number] = self._combine_partials(reduction)
        for stage in self.form.nest.stages:
            if not stage.inner:
                self._outer_stage(stage, self._moved(self.base, {}), {})
        del em

    def _combine_partials(self, reduction: Reduction) -> Operand:
        em, position = self.em, self._position(reduction)
        slot = em.alloca("i64", "left", 8)
        em.line(f"store i64 {self._slot(self.layout.task_count)}, ptr {slot}")
        with em.while_loop() as (_, done):
            left = em.value(f"load i64, ptr {slot}")
            more = em.value(f"icmp sgt i64 {left}, 1")
            pair = em.fresh("pair")
            em.line(f"br i1 {more}, label %{pair}, label %{done}")
            em.label(pair)
            half = em.value(f"lshr i64 {left}, 1")
            with em.loop(0, half) as i:
                self._combine_two(reduction, position, i)
            odd = em.value(f"and i64 {left}, 1")
            with em.loop(0, odd) as _:
                self._copy_partial(reduction, position, em.value(f"sub i64 {left}, 1"), half)
            em.line(f"store i64 {em.value(f'add i64 {half}, {odd}')}, ptr {slot}")
        half_read = 1 if is_indexed(reduction) else 0
        dtype = I64 if is_indexed(reduction) else reduction.value.dtype
        return em.load(self._partial(position, "0", half_read), dtype, 1)

    def _read_partial(self, r: Reduction, position: int, task: str) -> tuple[Operand, Operand]:
        em = self.em
        value = em.load(self._partial(position, task, 0), r.value.dtype, 1)
        where = em.const(I64, 0)
        if is_indexed(r):
            where = em.load(self._partial(position, task, 1), I64, 1)
        return value, where

    def _write_partial(
        self, r: Reduction, position: int, task: str, result: tuple[Operand, Operand]
    ) -> None:
        self.em.store(self._partial(position, task, 0), result[0])
        if is_indexed(r):
            self.em.store(self._partial(position, task, 1), result[1])

    def _combine_two(self, r: Reduction, position: int, i: str) -> None:
        em = self.em
        even = em.mul(i, 2)
        a = self._read_partial(r, position, even)
        b = self._read_partial(r, position, em.add(even, 1))
        self._write_partial(r, position, i, combine_pairs(em, r, a, b))

    def _copy_partial(self, r: Reduction, position: int, source: str, target: str) -> None:
        self._write_partial(r, position, target, self._read_partial(r, position, source))


def emit_nest(form: LoopForm, name: str) -> Emitter:
    """LLVM functions of a form, named ``name`` (and ``name.finish`` for full reductions)."""
    return NestEmitter(form, name).emit()


