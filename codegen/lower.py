"""Lowering: the body of a ``Fused`` node becomes a `Kernel` of loop nests.

Roots (results and reductions) are evaluated by pulling index maps down to loads.  Reductions order
the stages; expensive values needed by two stages of a row go through row scratch; a piecewise op
met at a place where both its branches are live splits the domain into boxes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, Value
from fusec.ops import get
from fusec.ops.cones import has_unit_region, is_piecewise, operands, piece, root_operands
from fusec.ops.gather import gathered_map, index_checks, index_operands
from fusec.ops.index_maps import COMPUTED, AxisIndex, IndexMap, identity, without_loop
from fusec.ops.reductions import folded
from fusec.ops.scalar_calls import CALLS

from .boxes import Box, Split, Writes, cut, live_branch
from .complex_pairs import (
    Pair,
    buffer_layout,
    complex_constant,
    complex_operation,
    concerns,
)
from .in_place import without_unused
from .loop_ir import (
    Access,
    Buffer,
    Expr,
    Kernel,
    Nest,
    Param,
    Reduction,
    Stage,
    Store,
    expr,
    walk,
)
from .scalar_rules import INDEX, operation, scalar_constant

# Row scratch costs a store and a load in cache; cheaper values are computed again.
SCRATCH_COST = 8.0

def lower(node: Node) -> Kernel:
    """The kernel of a ``Fused`` node; buffers are its inputs in order, then its outputs."""
    return _KernelLowering(node).run()


class _KernelLowering:
    """Everything the nests of one kernel share: buffers and constants."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.body: Graph = node.attrs["body"]
        self.domain: tuple[int, ...] = node.attrs["domain"]
        self.axes: tuple[int, ...] = node.attrs["axes"]
        parts = dict(node.attrs.get("apart", ()))
        self.apart = {n.out(): parts[n.name] for n in self.body.nodes if n.name in parts}
        self.checks = {n: k for k, n in enumerate(index_checks(self.body))}
        self.params: list[Param] = []
        self._param_index: dict[tuple, int] = {}
        self._writes: dict[Value, Writes] = {}
        # Reductions and results, in an order that respects their dependencies.
        reduced = (n.out() for n in self.body.nodes if get(n.op).kind == "reduce")
        self.roots = sorted({*self.body.outputs, *reduced}, key=lambda v: v.node.id)
        self.operands_of = {v: root_operands(v, self.apart.get(v)) for v in self.roots}
        values = (*self.body.inputs, *self.body.outputs)
        self.inputs = {v: i for i, v in enumerate(self.body.inputs)}
        self.outputs = {v: len(self.inputs) + i for i, v in enumerate(self.body.outputs)}
        self.buffers = tuple(
            Buffer(v.node.name, *buffer_layout(v.dtype, v.shape),
                   "in" if i < len(self.inputs) else "out")
            for i, v in enumerate(values)
        )

    def writes(self, value: Value) -> Writes:
        """How the array came about, of an update of a part of it."""
        if value not in self._writes:
            self._writes[value] = Writes(value)
        return self._writes[value]

    def run(self) -> Kernel:
        nests = [
            *self._nests(self.domain, lambda box: _NestLowering(self, box).run()),
            *self._override_nests(),
        ]
        locs = {
            (n.loc.file, n.loc.line): n.loc for n in self.body.nodes
            if n.loc is not None and n.op != "Input"
        }
        return Kernel(self.node.name, self.buffers, tuple(self.params), tuple(nests),
                      tuple(locs.values()))

    def _nests(self, shape: tuple[int, ...], lower_box: Callable[[Box], Nest]) -> Iterator[Nest]:
        """The nest of each box into which piecewise ops cut the domain."""
        boxes: list[Box] = [tuple((0, size) for size in shape)]
        while boxes:
            box = boxes.pop()
            try:
                yield lower_box(box)
            except Split as split:
                boxes.extend(reversed(cut(box, split)))

    def _override_nests(self) -> Iterator[Nest]:
        """Strided slice updates: a second nest writes the region over the copied target."""
        for root, buffer in self.outputs.items():
            if is_piecewise(root.node) and not has_unit_region(root.node):
                shape = root.node.inputs[1].shape
                nests = list(self._nests(shape, partial(_override, self, root, buffer)))
                checks = list(filter(None, map(_checks_alone, nests)))
                yield from checks
                yield from (_without_checks(n) for n in nests) if checks else nests

    def param(self, dtype: np.dtype, value: Any) -> Expr:
        """A run-time constant, one number per distinct bit pattern."""
        key = (dtype, np.asarray(value, dtype).tobytes())
        number = self._param_index.setdefault(key, len(self.params))
        if number == len(self.params):
            self.params.append(Param(dtype, value))
        return expr("param", dtype, attr=number)

    def constant(self, dtype: np.dtype, value: Any) -> Expr:
        return scalar_constant(dtype, value) or self.param(dtype, value)


def _checks_alone(nest: Nest) -> Nest | None:
    """The checks of a nest that stores at computed indices: all are done before it begins."""
    checks = nest.stages[0].checks
    if not checks or not nest.sequential:
        return None
    return without_unused(replace(nest, stages=(Stage(False, checks=checks),), sequential=False))


def _without_checks(nest: Nest) -> Nest:
    return replace(nest, stages=tuple(replace(s, checks=()) for s in nest.stages))


def _override(kernel: _KernelLowering, root: Value, buffer: int, box: Box) -> Nest:
    return _NestLowering(kernel, box).run_override(root, buffer)


@dataclass
class _StageDraft:
    inner: bool
    level: int
    stores: list[Store] = field(default_factory=list)
    scratch: list[tuple[int, Expr]] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    checks: dict[Expr, None] = field(default_factory=dict)
    memo: dict[tuple[Value, IndexMap], Expr | Pair] = field(default_factory=dict)


class _NestLowering:
    """One box of the domain: stages, accesses, scratch."""

    def __init__(self, kernel: _KernelLowering, box: Box) -> None:
        self.kernel = kernel
        self.box = box
        axes = kernel.axes
        outer = [d for d in range(len(self.box)) if d not in axes]
        self.order = [*outer, *(d for d in range(len(self.box)) if d in axes)]
        self.outer = len(outer)
        self.loop_of = {d: loop for loop, d in enumerate(self.order)}
        self.accesses: dict[Access, int] = {}
        self.scratch: list[np.dtype] = []
        self.scratch_of: dict[Value, int] = {}
        self.numbers: dict[Value, int] = {}  # of a complex one, the first of two
        self.drafts: list[_StageDraft] = []
        self.reductions = 0
        self.levels: dict[Value, int] = {}

    # -- stages

    def run(self) -> Nest:
        for root in self.kernel.roots:
            self._evaluate_root(root)
        drafts = sorted(self.drafts, key=lambda s: (s.level, not s.inner))
        stages = tuple(
            Stage(s.inner, tuple(s.stores), tuple(s.scratch), tuple(s.reductions), tuple(s.checks))
            for s in drafts
        )
        extents = tuple(self.box[d][1] - self.box[d][0] for d in self.order)
        return Nest(extents, self.outer, tuple(self.accesses), stages, tuple(self.scratch))

    def run_override(self, root: Value, buffer: int) -> Nest:
        """Stores the new values of a box of a strided region."""
        value = root.node.inputs[1]
        self.order = list(range(len(self.box)))
        self.outer, self.loop_of = len(self.box), {d: d for d in self.order}
        draft = self._draft(inner=False, level=0)
        result = self._build(draft, value, identity(value.shape))
        extents = tuple(high - low for low, high in self.box)
        if root.node.op == "Scatter":
            self._scattered(draft, root.node, buffer, result)
        else:
            attrs = root.node.attrs
            index = tuple(
                AxisIndex(d, step, start) for d, (step, start) in
                enumerate(zip(attrs["steps"], attrs["starts"], strict=True))
            )
            self._store_parts(draft, buffer, result, index)
        stage = Stage(False, tuple(draft.stores), checks=tuple(draft.checks))
        return Nest(extents, self.outer, tuple(self.accesses), (stage,),
                    sequential=any(s.index for s in stage.stores),
                    chunk=root.node.attrs.get("chunk", 0))

    def _scattered(
        self, draft: _StageDraft, node: Node, buffer: int, value: Expr | Pair
    ) -> None:
        """Stores a value at computed indices, alone or combined with what is there."""
        inside, indices = identity(node.inputs[1].shape), node.inputs[2:]
        index = gathered_map(node, indices, inside)
        if not any(_computed(index)):  # counters may name a place twice: only the order tells
            index = gathered_map(node, indices, inside, affine=False)
        for operand in index_operands(node, indices, inside):
            self._build(draft, *operand)
        args = tuple(self._build(draft, *i) for i in _computed(index))
        combine = node.attrs.get("combine", "")
        if combine:  # of booleans + is or
            part = value[0] if isinstance(value, tuple) else value
            scalar = get(combine).scalar or ""
            combine = operation(self.kernel, scalar, part.dtype, [part, part]).op
        self._store_parts(draft, buffer, value, index, args, combine)

    def _draft(self, inner: bool, level: int) -> _StageDraft:
        for draft in self.drafts:
            if draft.inner == inner and draft.level == level:
                return draft
        draft = _StageDraft(inner, level)
        self.drafts.append(draft)
        return draft

    def _evaluate_root(self, root: Value) -> None:
        domain, reads = self.kernel.operands_of[root]
        level = self._level(reads)
        if get(root.node.op).kind == "reduce":
            self._evaluate_reduction(root, reads, level)
        elif self.kernel.axes and domain != self.kernel.domain:
            row = self._draft(inner=False, level=level - 1)
            for index in self._points(root):
                index = tuple(
                    i._replace(loop=self.order[i.loop]) if i.loop >= 0 else i for i in index)
                self._store(row, root, self._build(row, root, index), index)
        else:
            draft = self._draft(inner=bool(self.kernel.axes), level=level)
            self._store_full(draft, root)

    def _points(self, root: Value) -> list[IndexMap]:
        """Where a root is stored: once, or a part after the other."""
        index, apart = identity(root.shape), self.kernel.apart.get(root)
        return [index] if apart is None else [
            without_loop(index, apart, at) for at in range(root.shape[apart])]

    def _store_full(self, draft: _StageDraft, root: Value) -> None:
        source = root
        if is_piecewise(root.node) and not has_unit_region(root.node):
            source = root.node.inputs[0]
        for index in self._points(root):
            self._store(draft, root, self._build(draft, source, index), index)

    def _evaluate_reduction(
        self, root: Value, reads: list[tuple[Value, IndexMap]], level: int
    ) -> None:
        draft = self._draft(inner=True, level=level)
        values = [self._build(draft, *read) for read in reads]
        parts = [part for v in values for part in (v if isinstance(v, tuple) else (v,))]
        number = self.numbers[root] = self.reductions
        self.reductions += len(parts)
        self.levels[root] = level
        kind = get(root.node.op).scalar or ""
        dtype = buffer_layout(root.dtype, ())[0]
        draft.reductions.extend(
            Reduction(number + i, kind, part, dtype) for i, part in enumerate(parts))
        if root in self.kernel.outputs:
            row = self._draft(inner=False, level=level)
            kept = root.shape if len(reads) == 1 else root.shape[:-1]
            index = tuple(
                AxisIndex(-1, 0, 0) if size == 1 else AxisIndex(self.order[loop], 1, 0)
                for loop, size in enumerate(kept)
            )
            if len(reads) == 1:
                self._store(row, root, self._reduced(root), index)
            for at in range(len(reads)) if len(reads) > 1 else ():
                self._store(row, root, self._reduced(root, at), (*index, AxisIndex(-1, 0, at)))

    def _level(self, reads: list[tuple[Value, IndexMap]]) -> int:
        """The first stage at which every reduction below is complete."""
        if not self.levels:
            return 0
        level, stack, seen = 0, [v for v, _ in reads], set()
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.levels:
                level = max(level, self.levels[value] + 1)
            else:
                stack.extend(value.node.inputs)
        return level

    def _reduced(self, root: Value, part: int = 0) -> Expr | Pair:
        dtype = buffer_layout(root.dtype, ())[0]
        if root.dtype.kind != "c":
            return expr("reduced", dtype, attr=self.numbers[root] + part)
        number = self.numbers[root] + 2 * part
        return expr("reduced", dtype, attr=number), expr("reduced", dtype, attr=number + 1)

    def _store(
        self, draft: _StageDraft, root: Value, value: Expr | Pair, index: IndexMap
    ) -> None:
        self._store_parts(draft, self.kernel.outputs[root], value, index)

    def _store_parts(
        self, draft: _StageDraft, buffer: int, value: Expr | Pair, index: IndexMap,
        at: tuple[Expr, ...] = (), combine: str = "",
    ) -> None:
        """``at``: the computed indices; a ``combine`` of complex values works part by part."""
        if not isinstance(value, tuple):
            draft.stores.append(Store(self._access(buffer, index), value, at, combine))
            return
        for number, part in enumerate(value):
            access = self._access(buffer, index, number)
            draft.stores.append(Store(access, part, at, combine))

    # -- expressions

    def _access(self, buffer: int, index: IndexMap, part: int | None = None) -> int:
        """``part``: 0 or 1 of a complex buffer."""
        numbers = itertools.count()
        placed = tuple(
            i._replace(computed=next(numbers)) if i.loop == COMPUTED else self._placed(i)
            for i in index
        )
        if part is not None:
            placed = (*placed, AxisIndex(-1, 0, part))
        return self.accesses.setdefault(Access(buffer, placed), len(self.accesses))

    def _placed(self, i: AxisIndex) -> AxisIndex:
        """From domain coordinates to this box's loop counters."""
        if i.loop < 0:
            return i
        return AxisIndex(self.loop_of[i.loop], i.step, i.start + i.step * self.box[i.loop][0])

    def _build(self, draft: _StageDraft, value: Value, index: IndexMap) -> Any:
        """The expression of ``value`` at ``index`` in this stage, without recursion."""
        goal = self._below(value, index)
        stack = [goal]
        while stack:
            item = stack[-1]
            if item in draft.memo:
                stack.pop()
                continue
            leaf = self._from_earlier_stage(draft, *item)
            if leaf is not None:
                draft.memo[item] = leaf
                continue
            is_leaf = self._is_leaf(item[0])
            parts = list(starmap(self._below, _computed(item[1]) if is_leaf else
                                 self._parts(*item)))
            missing = [p for p in parts if p not in draft.memo]
            if missing:
                stack.extend(missing)
                continue
            args = [draft.memo[p] for p in parts]
            draft.memo[item] = (self._leaf(*item, args) if is_leaf
                                else self._combine(draft, item[0].node, args))
        return draft.memo[goal]

    def _below(self, value: Value, index: IndexMap) -> tuple[Value, IndexMap]:
        """What is read there: of many parts written one by one, all but one lie elsewhere."""
        if value.node.op != "SliceUpdate" or not has_unit_region(value.node):
            return value, index
        return self.kernel.writes(value).reaching(self.box, index), index

    def _is_leaf(self, value: Value) -> bool:
        return (value in self.kernel.inputs or value in self.numbers
                or value.node.op in ("Const", "Iota"))

    def _leaf(self, value: Value, index: IndexMap, args: list[Any]) -> Expr | Pair:
        """``args``: the computed indices, in the order of the axes."""
        node = value.node
        if value in self.kernel.inputs:
            return self._loaded(value, index, args)
        if value in self.numbers:
            return self._reduced(value)
        if node.op == "Const" and value.dtype.kind == "c":
            return complex_constant(self.kernel, value.dtype, node.attrs["value"])
        if node.op == "Const":
            return self.kernel.constant(value.dtype, node.attrs["value"])
        return self._iota(value, self._placed(index[0]), args)

    def _loaded(self, value: Value, index: IndexMap, args: list[Any]) -> Expr | Pair:
        buffer, dtype = self.kernel.inputs[value], buffer_layout(value.dtype, ())[0]
        if dtype is value.dtype:
            return expr("load", dtype, *args, attr=self._access(buffer, index))
        real, imag = (expr("load", dtype, *args, attr=self._access(buffer, index, part))
                      for part in (0, 1))
        return real, imag

    def _iota(self, value: Value, i: AxisIndex, args: list[Expr]) -> Expr:
        counter = self.kernel.constant(INDEX, i.start)
        if i.loop != -1:
            step = self.kernel.constant(INDEX, i.step)
            moving = args[0] if args else expr("index", INDEX, attr=i.loop)
            scaled = expr("mul", INDEX, moving, step)
            counter = expr("add", INDEX, scaled, counter)
        return counter if value.dtype == INDEX else expr("cast", value.dtype, counter)

    def _from_earlier_stage(
        self, draft: _StageDraft, value: Value, index: IndexMap
    ) -> Expr | None:
        """An expensive value of this very point that an earlier pass over the row computed."""
        if not draft.inner or value.shape != self.kernel.domain or index != identity(value.shape):
            return None
        for earlier in self.drafts:
            if earlier.inner and earlier.level < draft.level and (value, index) in earlier.memo:
                made = earlier.memo[value, index]
                if isinstance(made, tuple):  # no scratch for complex values: computed again
                    return None
                if made.op == "scratch":
                    return made
                return self._spill(earlier, value, made) if _is_expensive(made) else None
        return None

    def _spill(self, stage: _StageDraft, value: Value, made: Expr) -> Expr:
        if value not in self.scratch_of:
            self.scratch_of[value] = len(self.scratch)
            self.scratch.append(value.dtype)
            stage.scratch.append((self.scratch_of[value], made))
        return expr("scratch", value.dtype, attr=self.scratch_of[value])

    def _parts(self, value: Value, index: IndexMap) -> Iterator[tuple[Value, IndexMap]]:
        node = value.node
        if is_piecewise(node):
            chosen = live_branch(self.box, node, index)
            yield piece(node, index, chosen)
        else:
            yield from operands(node, index)

    def _combine(self, draft: _StageDraft, node: Node, args: list[Any]) -> Expr | Pair:
        if node.op == "Scan":
            return _scan(node, args[0])
        if node.op == "ScalarCall":
            return self._scalar_call(draft, node, args)
        if node.op == "Fold":
            return _folded(self.kernel, node, args)
        if get(node.op).kind != "elementwise":
            return args[0]
        if concerns(node):
            return complex_operation(self.kernel, node, args)
        if node.op == "Verify":
            made = expr("verify", args[0].dtype, *args)
            draft.checks[made] = None
            return made
        if node.op == "CheckIndex":
            made = expr("check_index", INDEX, *args, attr=self.kernel.checks[node])
            draft.checks[made] = None
            return made
        return operation(self.kernel, get(node.op).scalar or "", node.types[0].dtype, args)

    def _scalar_call(self, draft: _StageDraft, node: Node, args: list[Expr]) -> Expr:
        op = CALLS[bool(node.attrs["raises"])]
        made = expr(op, node.types[0].dtype, *args, attr=str(node.attrs["function"]))
        if node.attrs["raises"]:
            draft.checks[made] = None
        return made


def _computed(index: IndexMap) -> Iterator[tuple[Value, IndexMap]]:
    """The indices of a load that are values themselves."""
    return (i.computed for i in index if i.loop == COMPUTED)


def _folded(kernel: _KernelLowering, node: Node, args: list[Any]) -> Expr | Pair:
    """The expression of all elements of short axes; complex ones are added part by part."""
    row, dtype = get(node.attrs["of"]), buffer_layout(node.types[0].dtype, ())[0]

    def join(a: Expr, b: Expr) -> Expr:
        return operation(kernel, row.scalar or "", dtype, [a, b])

    def joined(parts: list[Expr]) -> Expr:
        if row.name != "Sum":
            return folded(parts, join, in_order=True)
        if dtype.kind == "f" and not _is_square(parts[0]):  # of -0.0 alone NumPy's sum is 0.0
            parts = [join(parts[0], kernel.constant(dtype, 0)), *parts[1:]]
        return folded(parts, join, in_order=False)

    if not isinstance(args[0], tuple):
        return joined(args)
    return joined([real for real, _ in args]), joined([imag for _, imag in args])


def _is_square(e: Expr) -> bool:
    return e.op == "mul" and e.args[0] is e.args[1]


def _scan(node: Node, value: Expr | Pair) -> Expr | Pair:
    """Complex values are scanned part by part, which `needs_numpy` limits to additions."""
    if isinstance(value, tuple):
        return _scanned(node, value[0]), _scanned(node, value[1])
    return _scanned(node, value)


def _scanned(node: Node, value: Expr) -> Expr:
    return expr("scan", value.dtype, value, attr=node.attrs["combine"])


def _is_expensive(made: Expr) -> bool:
    from .scalar_rules import scalar_cost

    return sum(scalar_cost(e.op) for e in walk([made])) >= SCRATCH_COST
