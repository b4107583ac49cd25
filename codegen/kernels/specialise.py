"""From a nest and the strides of its buffers to a loop form: order, collapse, vector axis.

Sizes and strides stay run-time arguments.  The form (its `key`) holds structure only: number of
loops, dtypes, which strides along the vector axis are 0 or 1, and the expressions; equal keys share
machine code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.ir.sizes.bindings import Bindings, resolve, typical
from fusec.ir.sizes.dims import Size, is_static, maximum, minimum
from fusec.ir.sizes.symbolic_sizes import plain
from fusec.ops.regions.index_maps import COMPUTED

from .loop_ir import Kernel, Nest, walk
from .scalar_rules import BOOL

Mode = Literal["map", "row", "column", "tiled", "flat"]
# Elements of the vector axis done by one task of an elementwise nest, and by one of a full
# reduction: large enough to hide a task's set-up, small enough to balance threads.  Both are part
# of the definition of a full reduction's value, so they never depend on the machine.
MAP_BLOCK = 8192
FLAT_BLOCK = 32768


@dataclass(frozen=True, slots=True)
class LoopOperand:
    """An access as the loops see it: byte offset of its first element, byte stride per loop.

    ``gathered``: byte strides of its computed indices.
    """

    buffer: int
    dtype: np.dtype
    offset: int
    strides: tuple[int, ...]
    is_store: bool
    gathered: tuple[int, ...] = ()

    @property
    def is_static(self) -> bool:
        return is_static((self.offset, *self.strides, *self.gathered))

    def at_sizes(self, sizes: Bindings) -> LoopOperand:
        return self if self.is_static else replace(
            self, offset=resolve(self.offset, sizes), strides=resolve(self.strides, sizes),
            gathered=resolve(self.gathered, sizes))

    @property
    def is_contiguous_gather(self) -> bool:
        """Whether one computed index steps through neighbouring elements."""
        return self.gathered == (self.dtype.itemsize,)


@dataclass(frozen=True)
class LoopForm:
    """``extents`` of the loops in the order they run; the first ``outer`` are parallel.

    ``axis`` is the vectorised loop.  ``loop_of`` maps the nest's loops to loops of the form (-1:
    dropped, its counter is 0).
    """

    nest: Nest
    mode: Mode
    extents: tuple[int, ...]
    outer: int
    axis: int
    operands: tuple[LoopOperand, ...]
    loop_of: tuple[int, ...]
    params: tuple[Any, ...]

    @property
    def tasks(self) -> int:
        """The number of independent pieces of work."""
        return count_tasks(self.mode, self.extents, self.outer, self.axis)

    @property
    def rows(self) -> int:
        """Rows of a full reduction: points of all loops but the last."""
        return math.prod(self.extents[:-1])

    @property
    def rows_per_task(self) -> int:
        return max(1, FLAT_BLOCK // max(1, self.extents[-1]))

    @property
    def flat_tasks(self) -> int:
        return count_tasks("flat", self.extents, 0, 0)

    @property
    def points(self) -> int:
        return math.prod(self.extents)

    @property
    def is_static(self) -> bool:
        """Whether all its sizes are known."""
        return is_static(self.extents) and all(o.is_static for o in self.operands)

    @property
    def moved_bytes(self) -> int:
        """What a nest of known sizes moves, if nothing is read twice."""
        moved = dict[int, int]()
        for o in self.operands:
            points = math.prod(n for n, step in zip(self.extents, o.strides, strict=True) if step)
            moved[o.buffer] = max(moved.get(o.buffer, 0), points * o.dtype.itemsize)
        return sum(moved.values())

    def at_sizes(self, sizes: Bindings) -> LoopForm:
        """The same form, hence the same code, with its sizes evaluated."""
        operands = tuple(o.at_sizes(sizes) for o in self.operands)
        return replace(self, extents=resolve(self.extents, sizes), operands=operands)

    def stride_class(self, operand: LoopOperand) -> Literal["zero", "unit", "strided"]:
        stride = operand.strides[self.axis]
        if stride == 0:
            return "zero"
        return "unit" if stride == operand.dtype.itemsize else "strided"

    def near_stride(self, number: int) -> int:
        """Bytes from lane to lane where they are part of the code, 0: an argument.

        So it is where several operands are the parts of one short axis.
        """
        if is_empty(self.extents):
            return 0
        operand = self.operands[number]
        stride, size = operand.strides[self.axis], operand.dtype.itemsize
        if not isinstance(stride, int) or stride % size or not 1 < stride // size <= NEAR:
            return 0
        parts = sum(o.buffer == operand.buffer and o.strides == operand.strides
                    for o in self.operands)
        return plain(stride) if parts > 1 else 0


def is_empty(extents: Sequence[Size]) -> bool:
    """Whether a loop has no iterations: any form does then, and nothing is asked for one."""
    return any(type(n) is int and n == 0 for n in extents)


# Elements of a short axis, whose length machine code may know.
NEAR = 16
# A vectorised loop shorter than this leaves most lanes of its only vector idle.
SHORT_AXIS = 8
# Columns of an outer-axis reduction that one task carries in registers.
COLUMN_BLOCK = 64
# Columns of one task whose accumulators are in memory: where rows lie this many bytes apart, and
# all of them are more than a cache holds.
TILE = 1024
FAR_ROWS, MANY_BYTES = 512, 4 << 20
BLOCKS: dict[Mode, int] = {"map": MAP_BLOCK, "column": COLUMN_BLOCK, "tiled": TILE}
ACROSS: tuple[Mode, ...] = ("column", "tiled")  # vectors lie across the reduced loops


def count_tasks(mode: Mode, extents: Sequence[int], outer: int, axis: int) -> int:
    """The number of independent pieces of work of a form with these extents."""
    if mode == "flat":
        *before, last = extents
        rows_per_task = max(1, FLAT_BLOCK // max(1, last))
        return max(1, -(-math.prod(before) // rows_per_task)) * max(1, -(-last // FLAT_BLOCK))
    if mode == "row":
        return math.prod(extents[:outer])
    count = math.prod(n for loop, n in enumerate(extents[:outer]) if loop != axis)
    count *= -(-extents[axis] // BLOCKS[mode])
    return 0 if mode == "map" and 0 in extents else count


def tasks_of(form: LoopForm) -> Size:
    """`count_tasks` as a size, for extents that only the run knows."""
    extents = form.extents
    if form.mode == "flat":
        *before, last = extents
        rows_per_task = maximum(FLAT_BLOCK // maximum(last, 1), 1)
        rows = (math.prod(before) + rows_per_task - 1) // rows_per_task
        return maximum(rows, 1) * maximum((last + FLAT_BLOCK - 1) // FLAT_BLOCK, 1)
    if form.mode == "row":
        return math.prod(extents[: form.outer])
    count = math.prod(n for loop, n in enumerate(extents[: form.outer]) if loop != form.axis)
    block = BLOCKS[form.mode]
    count = count * ((extents[form.axis] + block - 1) // block)
    inner = extents[form.outer:] if form.mode == "map" else ()
    return count * math.prod(minimum(n, 1) for n in inner)


def specialise(kernel: Kernel, nest: Nest, strides: Sequence[tuple[int, ...]]) -> LoopForm:
    """The loop form of a nest whose buffers have these byte strides."""
    return _Specialiser(kernel, nest, strides).run()


class _Specialiser:
    def __init__(self, kernel: Kernel, nest: Nest, strides: Sequence[tuple[int, ...]]) -> None:
        self.kernel, self.nest = kernel, nest
        stored = {s.access for stage in nest.stages for s in stage.stores}
        self.operands = [
            self._operand(number, access, strides[access.buffer], number in stored)
            for number, access in enumerate(nest.accesses)
        ]
        self.pinned = {e.attr for e in walk(nest.roots) if e.op == "index"}
        self.ordered = any(
            r.kind in ("argmin", "argmax") for s in nest.stages for r in s.reductions
        )

    def _operand(self, number: int, access: Any, strides: Sequence[int], store: bool) -> Any:
        loops = [0] * len(self.nest.extents)
        offset = 0
        gathered = []
        for i, stride in zip(access.index, strides, strict=True):
            offset += i.start * stride
            if i.loop >= 0:
                loops[i.loop] += i.step * stride
            elif i.loop == COMPUTED:
                gathered.append(i.step * stride)
        dtype = self.kernel.buffers[access.buffer].dtype
        return LoopOperand(access.buffer, dtype, offset, tuple(loops), store, tuple(gathered))

    def run(self) -> LoopForm:
        nest, rank = self.nest, len(self.nest.extents)
        if not nest.has_reductions and not nest.has_scans:
            loops = range(rank)
            order = (self._useful(loops) if nest.sequential
                     else self._long_last(self._sorted(loops)))
            return self._form("map", order, [])
        outer = self._sorted(range(nest.outer))
        inner = list(range(nest.outer, rank))
        inner = self._useful(inner) if self.ordered else self._sorted(inner)
        if nest.outer == 0 and not nest.has_scans:
            return self._form("flat", [], inner)
        axis = None if is_empty(nest.extents) else self._column_axis(outer, inner)
        if axis is not None:
            outer = [*(d for d in outer if d != axis), axis]
            return self._form("tiled" if self._is_far(axis, inner) else "column", outer, inner)
        return self._form("row", outer, inner)

    def _useful(self, loops: Sequence[int]) -> list[int]:
        return [d for d in loops if self.nest.extents[d] != 1 or d in self.pinned]

    def _sorted(self, loops: Sequence[int]) -> list[int]:
        """Loops of more than one point, largest stride first: stores decide, then loads."""
        def weight(loop: int) -> tuple[int, int]:
            stores = [abs(typical(o.strides[loop])) for o in self.operands if o.is_store]
            loads = [abs(typical(o.strides[loop])) for o in self.operands if not o.is_store]
            return (max(stores, default=0), sum(loads))

        return sorted(self._useful(loops), key=weight, reverse=True)

    def _long_last(self, loops: list[int]) -> list[int]:
        """A loop too short for vectors (the 3 of an RGB image) goes outside a long one."""
        if is_empty(self.nest.extents):
            return loops
        groups = self._collapse(loops)
        lengths = [typical(math.prod(self.nest.extents[d] for d in g)) for g in groups]
        if len(groups) < 2 or lengths[-1] >= SHORT_AXIS or max(lengths) < 2 * SHORT_AXIS:
            return loops
        longest = groups[max(range(len(groups)), key=lambda i: lengths[i])][-1]
        return [*(d for d in loops if d != longest), longest]

    def _misfits(self, loop: int, inner: Sequence[int]) -> int:
        """Operands that a vector along this loop could not load in one piece, over and over."""
        return sum(o.strides[loop] not in (0, o.dtype.itemsize) for o in self.operands
                   if any(o.strides[d] for d in inner))

    def _column_axis(self, outer: list[int], inner: list[int]) -> int | None:
        """The outer loop to vectorise: where the inner ones are short, or the innermost is strided
        and it is not.  The answer decides the order of sums: their number has no say in it."""
        if not inner or not self.nest.outer:
            return None
        if typical(math.prod(self.nest.extents[d] for d in inner)) < SHORT_AXIS:
            return max(outer or [0], key=lambda d: typical(self.nest.extents[d]))
        if not outer:
            return None
        best = min(outer, key=lambda loop: self._misfits(loop, inner))
        if self._misfits(best, inner) < self._misfits(inner[-1], inner):
            varies = any(o.strides[best] for o in self.operands)
            return best if varies else None
        return None

    def _is_far(self, axis: int, inner: list[int]) -> bool:
        """Whether rows lie further apart than registers hold of one, and come from memory."""
        nest = self.nest
        if nest.scratch or nest.has_scans or BOOL in {
                r.value.dtype for s in nest.stages for r in s.reductions}:
            return False
        far = any(abs(typical(o.strides[inner[-1]])) >= FAR_ROWS for o in self.operands
                  if not o.is_store and o.strides[axis])
        widest = max(o.dtype.itemsize for o in self.operands)
        enough = typical(math.prod(nest.extents)) * widest >= MANY_BYTES
        return far and enough and typical(nest.extents[axis]) >= COLUMN_BLOCK

    def _form(self, mode: Mode, outer: list[int], inner: list[int]) -> LoopForm:
        groups = self._collapse(outer) + self._collapse(inner)
        outer_count = len(self._collapse(outer))
        if mode in ("row", "flat") and len(groups) == outer_count:
            groups.append([])
        if mode == "map" and not groups:
            groups, outer_count = [[]], 1
        extents = [math.prod(self.nest.extents[d] for d in g) for g in groups]
        loop_of = [-1] * len(self.nest.extents)
        for position, group in enumerate(groups):
            for d in group:
                loop_of[d] = position
        operands = tuple(
            LoopOperand(
                o.buffer, o.dtype, o.offset,
                tuple(o.strides[g[-1]] if g else 0 for g in groups), o.is_store, o.gathered,
            )
            for o in self.operands
        )
        axis = outer_count - 1 if mode in BLOCKS else len(groups) - 1
        return LoopForm(
            self.nest, mode, tuple(extents), outer_count, axis, operands, tuple(loop_of),
            tuple(p.value for p in self.kernel.params),
        )

    def _collapse(self, loops: list[int]) -> list[list[int]]:
        """Merge neighbouring loops that every operand steps through as one."""
        groups: list[list[int]] = []
        for loop in loops:
            if groups and self._continues(groups[-1][-1], loop):
                groups[-1].append(loop)
            else:
                groups.append([loop])
        return groups

    def _continues(self, before: int, loop: int) -> bool:
        if before in self.pinned or loop in self.pinned:
            return False
        extent = self.nest.extents[loop]
        return all(o.strides[before] == o.strides[loop] * extent for o in self.operands)


def structure_key(form: LoopForm) -> tuple:
    """Everything the machine code depends on, and nothing else: of sizes the numbers."""
    numbers: dict[int, int] = {}
    body = []
    for e in walk(form.nest.roots):
        numbers[id(e)] = len(numbers)
        attr = (type(e.attr).__name__,
                form.loop_of[e.attr] if e.op == "index" else plain(e.attr))
        body.append((e.op, e.dtype.str, attr, tuple(numbers[id(a)] for a in e.args)))
    stages = tuple(
        (
            s.inner,
            tuple((st.access, numbers[id(st.value)], tuple(numbers[id(i)] for i in st.index),
                   st.combine, st.any_order)
                  for st in s.stores),
            tuple((n, numbers[id(e)]) for n, e in s.scratch),
            tuple((r.number, r.kind, r.dtype.str, numbers[id(r.value)]) for r in s.reductions),
            tuple(numbers[id(e)] for e in s.checks),
        )
        for s in form.nest.stages
    )
    # Pointers are moved only along loops with a stride: see `NestEmitter._moved`.
    operands = tuple(
        (o.dtype.str, form.stride_class(o), o.is_store, tuple(s == 0 for s in o.strides),
         tuple(s == o.dtype.itemsize for s in o.gathered), form.near_stride(number))
        for number, o in enumerate(form.operands)
    )
    scratch = tuple(d.str for d in form.nest.scratch)
    return (form.mode, len(form.extents), form.outer, form.axis, operands, tuple(body), stages,
            scratch, len(form.params))
