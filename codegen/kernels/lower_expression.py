"""The expressions of one nest: index maps are pulled down to loads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from itertools import starmap
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import Node, Value
from fusec.ops import get
from fusec.ops.calls.scalar_calls import CALLS
from fusec.ops.regions.cones import has_unit_region, is_piecewise, operands, piece
from fusec.ops.regions.index_maps import COMPUTED, AxisIndex, IndexMap, identity
from fusec.ops.rows.reductions import folded

from .boxes import Box, live_branch
from .complex_pairs import Pair, buffer_layout, complex_constant, complex_operation, concerns
from .fused_body import FusedBody
from .loop_ir import ESTIMATED, Access, Expr, Reduction, Store, expr, walk
from .scalar_rules import INDEX, Constants, operation, scalar_cost

# Row scratch costs a store and a load in cache; cheaper values are computed again.
SCRATCH_COST = 8.0


@dataclass
class StageDraft:
    """A stage of a nest while it is lowered; ``memo`` holds its expressions."""

    inner: bool
    level: int
    stores: list[Store] = field(default_factory=list)
    scratch: list[tuple[int, Expr]] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    checks: dict[Expr, None] = field(default_factory=dict)
    memo: dict[tuple[Value, IndexMap], Expr | Pair] = field(default_factory=dict)


class ExpressionLowering:
    """Builds expressions for one box of the domain; collects accesses and scratch of its nest."""

    def __init__(self, body: FusedBody, box: Box) -> None:
        self.body, self.constants = body, body.constants
        self.box = box
        axes = body.axes
        outer = [d for d in range(len(self.box)) if d not in axes]
        self.order = [*outer, *(d for d in range(len(self.box)) if d in axes)]
        self.outer = len(outer)
        self.loop_of = {d: loop for loop, d in enumerate(self.order)}
        self.accesses: dict[Access, int] = {}
        self.scratch: list[np.dtype] = []
        self.scratch_of: dict[Value, int] = {}
        self.numbers: dict[Value, int] = {}  # of a complex one, the first of two
        self.drafts: list[StageDraft] = []

    def built(self) -> Iterator[tuple[Value, Expr | Pair]]:
        """The values that were met, with their expressions; those of reductions by their number."""
        for draft in self.drafts:
            yield from ((value, made) for (value, _), made in draft.memo.items())
        for root in self.numbers:
            yield root, self._reduced(root)

    def _reduced(self, root: Value, part: int = 0) -> Expr | Pair:
        dtype = buffer_layout(root.dtype, ())[0]
        if root.dtype.kind != "c":
            return expr("reduced", dtype, attr=self.numbers[root] + part)
        number = self.numbers[root] + 2 * part
        return expr("reduced", dtype, attr=number), expr("reduced", dtype, attr=number + 1)

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

    def _build(self, draft: StageDraft, value: Value, index: IndexMap) -> Any:
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
            parts = list(starmap(self._below, computed(item[1]) if is_leaf else
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
        """The array as the last update that reaches the box left it; all others are elsewhere."""
        if value.node.op != "SliceUpdate" or not has_unit_region(value.node):
            return value, index
        return self.body.writes(value).reaching(self.box, index), index

    def _is_leaf(self, value: Value) -> bool:
        return (value in self.body.inputs or value in self.numbers
                or get(value.node.op).kind == "source")

    def _leaf(self, value: Value, index: IndexMap, args: list[Any]) -> Expr | Pair:
        """``args``: the computed indices, in the order of the axes."""
        node = value.node
        if value in self.body.inputs:
            return self._loaded(value, index, args)
        if value in self.numbers:
            return self._reduced(value, index[-1].start if value in self.body.unrolled else 0)
        if node.op == "Const" and value.dtype.kind == "c":
            return complex_constant(self.constants, value.dtype, node.attrs["value"])
        if node.op == "Const":
            return self.constants.of(value.dtype, node.attrs["value"])
        return self._iota(value, self._placed(index[0]), args)

    def _loaded(self, value: Value, index: IndexMap, args: list[Any]) -> Expr | Pair:
        buffer, dtype = self.body.inputs[value], buffer_layout(value.dtype, ())[0]
        if dtype is value.dtype:
            return expr("load", dtype, *args, attr=self._access(buffer, index))
        real, imag = (expr("load", dtype, *args, attr=self._access(buffer, index, part))
                      for part in (0, 1))
        return real, imag

    def _iota(self, value: Value, i: AxisIndex, args: list[Expr]) -> Expr:
        counter = self.constants.of(INDEX, i.start)
        if i.loop != -1:
            step = self.constants.of(INDEX, i.step)
            moving = args[0] if args else expr("index", INDEX, attr=i.loop)
            scaled = expr("mul", INDEX, moving, step)
            counter = expr("add", INDEX, scaled, counter)
        return counter if value.dtype == INDEX else expr("cast", value.dtype, counter)

    def _from_earlier_stage(
        self, draft: StageDraft, value: Value, index: IndexMap
    ) -> Expr | None:
        """An expensive value that an earlier stage computed at this point, from row scratch."""
        if not draft.inner or value.shape != self.body.domain or index != identity(value.shape):
            return None
        for earlier in self.drafts:
            if earlier.inner and earlier.level < draft.level and (value, index) in earlier.memo:
                e = earlier.memo[value, index]
                if isinstance(e, tuple):  # no scratch for complex values: computed again
                    return None
                if e.op == "scratch":
                    return e
                return self._spill(earlier, value, e) if _is_expensive(e) else None
        return None

    def _spill(self, stage: StageDraft, value: Value, e: Expr) -> Expr:
        if value not in self.scratch_of:
            self.scratch_of[value] = len(self.scratch)
            self.scratch.append(value.dtype)
            stage.scratch.append((self.scratch_of[value], e))
        return expr("scratch", value.dtype, attr=self.scratch_of[value])

    def _parts(self, value: Value, index: IndexMap) -> Iterator[tuple[Value, IndexMap]]:
        node = value.node
        if is_piecewise(node):
            ends = self.body.ends(node) if node.op == "Concat" else ()
            branch = live_branch(self.box, node, index, ends)
            yield piece(node, index, branch, ends)
        else:
            yield from operands(node, index)

    def _combine(self, draft: StageDraft, node: Node, args: list[Any]) -> Expr | Pair:
        if node.op == "Scan":
            return _scan(node, args[0])
        if node.op == "ScalarCall":
            return self._scalar_call(draft, node, args)
        if node.op == "Fold":
            return _folded(self.constants, node, args)
        if get(node.op).kind != "elementwise":
            return args[0]
        if concerns(node):
            return complex_operation(self.constants, node, args)
        if node.op == "Verify":
            check = expr("verify", args[0].dtype, *args, attr=self.body.checks[node])
            draft.checks[check] = None
            return check
        if node.op == "CheckIndex":
            check = expr("check_index", INDEX, *args, attr=self.body.checks[node])
            draft.checks[check] = None
            return check
        scalar, dtype = get(node.op).scalar or "", node.types[0].dtype
        if "contracts" in node.attrs:
            return _contracted(self.constants, scalar, dtype, args)
        made = operation(self.constants, scalar, dtype, args)
        if "estimated" in node.attrs and made.attr is None:
            return expr(made.op, dtype, *made.args, attr=ESTIMATED)
        return made

    def _scalar_call(self, draft: StageDraft, node: Node, args: list[Expr]) -> Expr:
        op = CALLS[bool(node.attrs["raises"])]
        call = expr(op, node.types[0].dtype, *args, attr=str(node.attrs["function"]))
        if node.attrs["raises"]:
            draft.checks[call] = None
        return call


def _contracted(constants: Constants, op: str, dtype: np.dtype, args: list[Expr]) -> Expr:
    """A sum or difference, with the product that an operand may be; of zeros nothing is added."""
    a, b = args
    if op == "sub":
        b = operation(constants, "neg", dtype, [b]) if b.op != "mul" else expr(
            "mul", dtype, operation(constants, "neg", dtype, [b.args[0]]), b.args[1])
    for x, y in ((b, a), (a, b)):
        if x.op == "const" and x.attr == 0:
            return y
    for x, y in ((b, a), (a, b)):
        if x.op == "mul":
            return operation(constants, "fma", dtype, [*x.args, y])
    return operation(constants, "add", dtype, [a, b])


def computed(index: IndexMap) -> Iterator[tuple[Value, IndexMap]]:
    """The indices of a load that are values themselves."""
    return (i.computed for i in index if i.loop == COMPUTED)


def _folded(constants: Constants, node: Node, args: list[Any]) -> Expr | Pair:
    """The expression of all elements of short axes; complex ones are added part by part."""
    row, dtype = get(node.attrs["of"]), buffer_layout(node.types[0].dtype, ())[0]

    def join(a: Expr, b: Expr) -> Expr:
        return operation(constants, row.scalar or "", dtype, [a, b])

    def joined(parts: list[Expr]) -> Expr:
        if row.name != "Sum":
            return folded(parts, join, in_order=True)
        if dtype.kind == "f" and not _is_square(parts[0]):  # of -0.0 alone NumPy's sum is 0.0
            parts = [join(parts[0], constants.of(dtype, 0)), *parts[1:]]
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


def _is_expensive(root: Expr) -> bool:
    return sum(scalar_cost(e.op) for e in walk([root])) >= SCRATCH_COST
