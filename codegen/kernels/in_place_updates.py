"""Kernels that update an argument: which stores are no-ops, and whether they may run in place.

An update is computed as the argument's new value as a whole.  Where the new value is the old one,
nothing needs storing, so only the touched region is written.  The rest may be written straight into
the argument when every read of it, in this kernel, is at the index being written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fusec.ir.regions import Reach, meet, span
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ops.regions.index_maps import AxisIndex, IndexMap

from .loop_ir import Access, Buffer, Expr, Kernel, Nest, Stage, Store, expr, walk

Pair = tuple[int, int]  # two buffers that are to be one memory: one written, one read
MOST_ORDERED = 48  # nests of a kernel whose order is looked for: all pairs are compared


def drop_unchanged(kernel: Kernel, out: int, source: int) -> Kernel:
    """The kernel without stores to buffer ``out`` of ``source``'s element at the same index.

    A store stays if an earlier one may have overwritten its elements: it restores them.
    """
    nests: list[Nest] = []
    for nest in kernel.nests:
        kept = _drop(nest, out, source, nests)
        if kept is not None:
            nests.append(kept)
    return replace(kernel, nests=tuple(nests))


def _drop(nest: Nest, out: int, source: int, earlier: Sequence[Nest]) -> Nest | None:
    written: set[IndexMap] = set()  # by stages before

    def is_kept(store: Store) -> bool:
        target = nest.accesses[store.access]
        value = store.value
        if target.buffer != out or value.op != "load" or value.args:
            return True
        read = nest.accesses[value.attr]
        return read.buffer != source or read.index != target.index or (
            _overlap(nest, {target.index}, nest, written)) or any(
            _overlap(nest, {target.index}, other, _written(other, out)) for other in earlier)

    stages = []
    for stage in nest.stages:
        kept = tuple(filter(is_kept, stage.stores))
        stages.append(replace(stage, stores=kept))
        written |= {nest.accesses[s.access].index for s in kept
                    if nest.accesses[s.access].buffer == out}
    if not any(s.stores or s.scratch or s.reductions or s.checks for s in stages):
        return None
    return without_unused(replace(nest, stages=tuple(stages)))


def without_unused(nest: Nest) -> Nest:
    """The nest without unused accesses; the others are renumbered."""
    used = {e.attr for e in walk(nest.roots) if e.op == "load"}
    used |= {s.access for stage in nest.stages for s in stage.stores}
    if len(used) == len(nest.accesses):
        return nest
    number = {old: new for new, old in enumerate(sorted(used))}
    memo: dict[int, Expr] = {}
    for e in walk(nest.roots):
        attr = number[e.attr] if e.op == "load" else e.attr
        memo[id(e)] = expr(e.op, e.dtype, *(memo[id(a)] for a in e.args), attr=attr)
    stages = tuple(_renumbered(s, number, memo) for s in nest.stages)
    accesses = tuple(nest.accesses[old] for old in sorted(used))
    return replace(nest, stages=stages, accesses=accesses)


def _renumbered(stage: Stage, number: dict[int, int], memo: dict[int, Expr]) -> Stage:
    return replace(
        stage,
        stores=tuple(
            Store(number[s.access], memo[id(s.value)], tuple(memo[id(i)] for i in s.index),
                  s.combine, s.any_order)
            for s in stage.stores),
        scratch=tuple((n, memo[id(e)]) for n, e in stage.scratch),
        reductions=tuple(replace(r, value=memo[id(r.value)]) for r in stage.reductions),
        checks=tuple(memo[id(e)] for e in stage.checks),
    )


def may_run_in_place(kernel: Kernel, pairs: Iterable[Pair]) -> bool:
    """Whether each ``out`` buffer may be the memory of its ``source`` buffers.

    True when every read of a source, in every nest, is at the index at which that nest writes it or
    where it writes nothing, and no earlier nest has written there.
    """
    return all(_reads_match(kernel, out, source) for out, source in pairs)


def read_first(kernel: Kernel, pairs: Sequence[Pair]) -> Kernel:
    """The kernel with its nests in an order in which ``source`` buffers are read before others
    write there, as far as there is one; nests that write to the same elements keep theirs.

    The border of an array is set from the other one, which is set from its neighbours: the
    first update's value has to be taken before the second is made.
    """
    nests = kernel.nests
    if not 1 < len(nests) <= MOST_ORDERED or kernel.has_checks or (
            may_run_in_place(kernel, pairs)) or not all(
            _reads_stay(nest, *_places(nest, *pair)) for nest in nests for pair in pairs):
        return kernel
    before = [{i for i in range(len(nests)) if i != j and _comes_first(nests, i, j, pairs)}
              for j in range(len(nests))]
    order: list[int] = []
    while len(order) < len(nests):
        ready = [j for j in range(len(nests)) if j not in order and before[j].issubset(order)]
        if not ready:
            return kernel
        order.append(ready[0])
    return replace(kernel, nests=tuple(nests[j] for j in order))


def _comes_first(nests: Sequence[Nest], i: int, j: int, pairs: Sequence[Pair]) -> bool:
    """Whether nest ``i`` has to run before nest ``j``."""
    one, other = nests[i], nests[j]
    if i < j and any(_overlap(one, _written(one, out), other, _written(other, out))
                     for out in _outputs(one)):
        return True
    return any(_overlap(one, {a.index for a in one.accesses if a.buffer == source},
                        other, _written(other, out)) for out, source in pairs)


def _outputs(nest: Nest) -> set[int]:
    return {nest.accesses[s.access].buffer for stage in nest.stages for s in stage.stores}


def written_boxes(kernel: Kernel, out: int) -> list[Reach] | None:
    """The boxes of buffer ``out`` that the kernel writes, at most; None: anything."""
    return _boxes((nest, index) for nest in kernel.nests for index in _written(nest, out))


def reads_apart(kernel: Kernel, source: int, boxes: Sequence[Reach]) -> bool:
    """Whether the kernel reads nothing of buffer ``source`` that lies in the boxes."""
    reads = _boxes((nest, access.index) for nest in kernel.nests for access in nest.accesses
                   if access.buffer == source)
    try:
        return reads is not None and not any(meet(a, b) for a in reads for b in boxes)
    except UndecidedSizeError:
        return False


def _boxes(indices: Iterable[tuple[Nest, IndexMap]]) -> list[Reach] | None:
    boxes = []
    for nest, index in indices:
        if _is_computed(index):
            return None
        boxes.append(_bounds(nest, index))
    return boxes


def checks_come_first(kernel: Kernel, out: int) -> bool:
    """Whether every check of the kernel is done before it first writes buffer ``out``."""
    written = False
    for nest in kernel.nests:
        written = written or bool(_written(nest, out))
        if written and any(stage.checks for stage in nest.stages):
            return False
    return True


def stores_at_computed(kernel: Kernel, out: int) -> bool:
    """Whether it stores to buffer ``out`` at computed indices."""
    return any(_is_computed(index) for nest in kernel.nests for index in _written(nest, out))


def _is_computed(index: IndexMap) -> bool:
    return any(i.computed is not None for i in index)


def _reads_match(kernel: Kernel, out: int, source: int) -> bool:
    earlier: list[Nest] = []  # those that have written
    for nest in kernel.nests:
        reads, writes = _places(nest, out, source)
        if not _reads_stay(nest, reads, writes) or (
                reads & writes and _reads_after_write(nest, out, source)):
            return False
        if any(_overlap(nest, reads, other, _written(other, out)) for other in earlier):
            return False
        if writes:
            earlier.append(nest)
    return True


def _places(nest: Nest, out: int, source: int) -> tuple[set[IndexMap], set[IndexMap]]:
    """Where the nest reads one buffer, and where it writes the other."""
    return ({_short(nest, a.index) for a in nest.accesses if a.buffer == source},
            {_short(nest, index) for index in _written(nest, out)})


def _short(nest: Nest, index: IndexMap) -> IndexMap:
    """The index without loops of one point."""
    return tuple(i if i.loop < 0 or i.computed is not None or nest.extents[i.loop] != 1
                 else AxisIndex(-1, 0, i.start) for i in index)


def _reads_stay(nest: Nest, reads: set[IndexMap], writes: set[IndexMap]) -> bool:
    """Whether no read meets a write of another iteration of the nest: each is where its own
    iteration writes, or (a border from its neighbours) where none does."""
    if writes and any(map(_is_computed, reads)):
        return False
    return not any(read != write and _overlap(nest, {read}, nest, {write})
                   for read in reads for write in writes)


def _reads_after_write(nest: Nest, out: int, source: int) -> bool:
    """Whether a stage after the first that writes ``out`` still reads ``source``: a pass over the
    row would meet stores of an earlier pass there.

    Reductions of everything do the stages around the loops when these have ended, all of them.
    """
    flat = sorted(nest.stages, key=lambda stage: not stage.inner)
    return any(_reads_later(nest, stages, out, source) for stages in (nest.stages, flat))


def _reads_later(nest: Nest, stages: Sequence[Stage], out: int, source: int) -> bool:
    written = False
    for stage in stages:
        loads = {e.attr for e in walk(stage.roots) if e.op == "load"}
        if written and any(nest.accesses[k].buffer == source for k in loads):
            return True
        written = written or any(nest.accesses[s.access].buffer == out for s in stage.stores)
    return False


def _overlap(nest: Nest, indices: set, other: Nest, others: set) -> bool:
    """Whether two sets of accesses may touch one element: their bounding boxes meet."""
    if any(map(_is_computed, (*indices, *others))):
        return True
    boxes = [_bounds(nest, i) for i in indices]
    try:
        return any(meet(box, _bounds(other, index)) for box in boxes for index in others)
    except UndecidedSizeError:
        return True


def _bounds(nest: Nest, index: IndexMap) -> Reach:
    """Least and greatest index on each axis."""
    return [span(i.start, i.step, nest.extents[i.loop] if i.loop >= 0 else 1) for i in index]


def _written(nest: Nest, out: int) -> set[IndexMap]:
    return set(_written_in_order(nest, out))


def _written_in_order(nest: Nest, out: int) -> list[IndexMap]:
    """Where it stores to ``out``, each index once."""
    stored = (nest.accesses[s.access] for stage in nest.stages for s in stage.stores)
    return list(dict.fromkeys(a.index for a in stored if a.buffer == out))


def copy_kernel(kernel: Kernel, out: int) -> Kernel:
    """Copies the elements that ``kernel`` stored to ``out`` (buffer 0) to another array (buffer 1).

    A kernel that stores at computed indices stores the rest as well.
    """
    info = kernel.buffers[out]
    buffers = (
        Buffer(info.value, info.dtype, info.shape, "in"),
        Buffer(info.value + "_target", info.dtype, info.shape, "out"),
    )
    nests = [_copy_nest(n, index, info) for n in kernel.nests for index in _written_in_order(n, out)
             if not _is_computed(index)]
    return Kernel(f"{kernel.name}_writeback", buffers, (), tuple(nests), kernel.locs)


def _copy_nest(nest: Nest, index: tuple, info: Buffer) -> Nest:
    accesses = (Access(0, index), Access(1, index))
    used = [i.loop for i in index if i.loop >= 0]
    extents = tuple(
        extent if loop in used else 1 for loop, extent in enumerate(nest.extents)
    )
    stage = Stage(False, (Store(1, expr("load", info.dtype, attr=0)),))
    return Nest(extents, len(extents), accesses, (stage,))
