"""The stages of one nest: roots in order, reductions before their readers."""

from __future__ import annotations

from dataclasses import replace

from fusec.ir import Node, Value
from fusec.ops import get
from fusec.ops.regions.cones import has_unit_region, is_piecewise
from fusec.ops.regions.index_maps import AxisIndex, IndexMap, identity, without_loop
from fusec.ops.rows.gather import gathered_map, index_operands

from .boxes import Box
from .complex_pairs import Pair, buffer_layout
from .fused_body import FusedBody
from .loop_ir import Expr, Nest, Reduction, Stage, Store
from .lower_expression import ExpressionLowering, StageDraft, computed
from .scalar_rules import operation


class NestLowering(ExpressionLowering):
    """One box of the domain: stages, and their stores."""

    def __init__(self, body: FusedBody, box: Box) -> None:
        super().__init__(body, box)
        self.reductions = 0
        self.levels: dict[Value, int] = {}

    def run(self) -> Nest:
        for root in self.body.roots:
            self._evaluate_root(root)
        drafts = sorted(self.drafts, key=lambda s: (s.level, not s.inner))
        stages = tuple(
            Stage(s.inner, tuple(s.stores), tuple(s.scratch), tuple(s.reductions), tuple(s.checks))
            for s in drafts
        )
        extents = tuple(self.box[d][1] - self.box[d][0] for d in self.order)
        if not self.reductions and any(map(_is_in_parts, self.body.roots)):  # all zero in this box
            stages = tuple(replace(s, inner=False) for s in stages if s.inner)
            return Nest(extents, len(extents), tuple(self.accesses), stages)
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
        self, draft: StageDraft, node: Node, buffer: int, value: Expr | Pair
    ) -> None:
        """Stores a value at computed indices, alone or combined with the element there."""
        inside, indices = identity(node.inputs[1].shape), node.inputs[2:]
        index = gathered_map(node, indices, inside)
        if not any(computed(index)):  # counters may name a place twice: only the order tells
            index = gathered_map(node, indices, inside, affine=False)
        for operand in index_operands(node, indices, inside):
            self._build(draft, *operand)
        args = tuple(self._build(draft, *i) for i in computed(index))
        combine = node.attrs.get("combine", "")
        if combine:  # of booleans + is or
            part = value[0] if isinstance(value, tuple) else value
            scalar = get(combine).scalar or ""
            combine = operation(self.constants, scalar, part.dtype, [part, part]).op
        self._store_parts(draft, buffer, value, index, args, combine, "estimated" in node.attrs)

    def _draft(self, inner: bool, level: int) -> StageDraft:
        for draft in self.drafts:
            if draft.inner == inner and draft.level == level:
                return draft
        draft = StageDraft(inner, level)
        self.drafts.append(draft)
        return draft

    def _evaluate_root(self, root: Value) -> None:
        domain, reads = self.body.operands_of[root]
        level = self._level(reads)
        if get(root.node.op).kind == "reduce":
            self._evaluate_reduction(root, reads, level)
        elif self.body.axes and domain != self.body.domain:
            row = self._draft(inner=False, level=level - 1)
            for index in self._points(root):
                index = tuple(
                    i._replace(loop=self.order[i.loop]) if i.loop >= 0 else i for i in index)
                self._store(row, root, self._build(row, root, index), index)
        else:
            draft = self._draft(inner=bool(self.body.axes), level=level)
            self._store_full(draft, root)

    def _points(self, root: Value) -> list[IndexMap]:
        """Where a root is stored: once, or a part after the other."""
        index, unrolled = identity(root.shape), self.body.unrolled.get(root)
        return [index] if unrolled is None else [
            without_loop(index, unrolled, at) for at in range(root.shape[unrolled])]

    def _store_full(self, draft: StageDraft, root: Value) -> None:
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
        if _is_in_parts(root) and self._is_part and _is_zero(values[0]):
            return
        parts = [part for v in values for part in (v if isinstance(v, tuple) else (v,))]
        number = self.numbers[root] = self.reductions
        self.reductions += len(parts)
        self.levels[root] = level
        kind = get(root.node.op).scalar or ""
        dtype = buffer_layout(root.dtype, ())[0]
        draft.reductions.extend(
            Reduction(number + i, kind, part, dtype) for i, part in enumerate(parts))
        if root in self.body.outputs:
            row = self._draft(inner=False, level=level)
            shape = root.shape if len(reads) == 1 else root.shape[:-1]
            index = tuple(
                AxisIndex(-1, 0, 0) if size == 1 else AxisIndex(self.order[loop], 1, 0)
                for loop, size in enumerate(shape)
            )
            if len(reads) == 1:
                self._store(row, root, self._reduced(root), index, self._combine_of(root))
            for at in range(len(reads)) if len(reads) > 1 else ():
                self._store(row, root, self._reduced(root, at), (*index, AxisIndex(-1, 0, at)))

    def _level(self, reads: list[tuple[Value, IndexMap]]) -> int:
        """The first stage at which every reduction below is complete."""
        if not self.levels:
            return 0
        level, stack, visited = 0, [v for v, _ in reads], set()
        while stack:
            value = stack.pop()
            if value in visited:
                continue
            visited.add(value)
            if value in self.levels:
                level = max(level, self.levels[value] + 1)
            else:
                stack.extend(value.node.inputs)
        return level

    @property
    def _is_part(self) -> bool:
        """Whether other nests go over other boxes of the domain."""
        return self.box != tuple((0, size) for size in self.body.domain)

    def _combine_of(self, root: Value) -> str:
        """How a reduction of a box is joined with those of the boxes before it."""
        return "add" if _is_in_parts(root) and self._is_part else ""

    def _store(
        self, draft: StageDraft, root: Value, value: Expr | Pair, index: IndexMap,
        combine: str = "",
    ) -> None:
        self._store_parts(draft, self.body.outputs[root], value, index, combine=combine)

    def _store_parts(
        self, draft: StageDraft, buffer: int, value: Expr | Pair, index: IndexMap,
        at: tuple[Expr, ...] = (), combine: str = "", any_order: bool = False,
    ) -> None:
        """``at``: the computed indices; a ``combine`` of complex values works part by part."""
        if not isinstance(value, tuple):
            draft.stores.append(Store(self._access(buffer, index), value, at, combine, any_order))
            return
        for number, part in enumerate(value):
            access = self._access(buffer, index, number)
            draft.stores.append(Store(access, part, at, combine, any_order))


def _is_in_parts(root: Value) -> bool:
    return "in_parts" in root.node.attrs


def _is_zero(value: Expr | Pair) -> bool:
    return isinstance(value, Expr) and value.op == "const" and value.attr == 0
