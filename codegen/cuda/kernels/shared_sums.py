"""Sums of integers at few places, of many points (`np.add.at(counts, i, 1)`): each block has sums
of its own in shared memory, which it adds to the array at its end.

Where all points are added to one array its places are what they wait for, one after another.
"""

from __future__ import annotations

import numpy as np

from fusec.core.records import replace

from ...kernels.loop_ir import Store
from ...kernels.specialise import LoopForm
from ..scalars.emitter import unsigned_type
from .elementwise_kernels import grid_start
from .launch_plan import Geometry, Layout, blocks_for
from .nest_kernel import KernelWriter, ThreadPoint

THREADS = 256
MOST_BYTES = 16 << 10  # of sums: three blocks of a multiprocessor have 48 KiB
LEAST_POINTS = 1 << 16
POINTS_OF_A_THREAD, MOST_BLOCKS = 16, 1024


def places_of(form: LoopForm) -> int:
    """How many places a form adds to, where they are so few; else 0."""
    if len(form.nest.stages) != 1 or not form.is_static or form.points < LEAST_POINTS:
        return 0
    stage = form.nest.stages[0]
    if len(stage.stores) != 1 or len(stage.stores[0].index) != 1:
        return 0
    (store,) = stage.stores
    operand, (index,) = form.operands[store.access], store.index
    if store.combine != "add" or operand.dtype.kind not in "iu" or operand.dtype.itemsize < 4:
        return 0
    if any(operand.strides) or index.op != "check_index":
        return 0
    size = index.args[1]
    places = size.attr if size.op == "const" else (
        form.params[size.attr] if size.op == "param" else None)
    if not isinstance(places, int | np.integer):
        return 0
    return int(places) if 0 < places * _word_bytes(form, store) <= MOST_BYTES else 0


def _word_bytes(form: LoopForm, store: Store) -> int:
    """Of a sum: 32 bits hold those of ones, of which a launch has fewer than 2**31 points."""
    counts = store.value.op == "const" and store.value.attr == 1 and form.points < 1 << 31
    return 4 if counts else form.operands[store.access].dtype.itemsize


class SharedSumKernel(KernelWriter):
    """See the module docstring."""

    has_barriers = True
    max_threads = THREADS

    def body(self) -> None:
        form, em, index = self.form, self.em, self.index
        (stage,), (store,) = form.nest.stages, form.nest.stages[0].stores
        places, nbytes = places_of(form), _word_bytes(form, store)
        word = f"u{8 * nbytes}"
        self.head.append(f"__shared__ {word} sums[{places}];")
        self.shared_bytes = nbytes * places
        each = f"for (int b = int(threadIdx.x); b < {places}; b += {THREADS})"
        with em.block(each):
            em.line(f"shared_store(&sums[b], {word}(0));")
        em.line("__syncthreads();")
        (start, step), pointers = grid_start(index), [
            self.pointer(n) for n in range(len(form.operands))]
        points = self.param(("work",), self.index_kind, "points")
        with em.block(f"for ({index} id = {start}; id < {points}; id += {step})"):
            counters = self.decoded("id", list(range(len(form.extents))))
            before = {loop: c for loop, c in counters.items() if loop != form.axis}
            place = ThreadPoint(counters, self.moved(pointers, before))
            loads = self._loads(stage, place)
            known = self._evaluate([*store.index, store.value, *stage.checks],
                                   replace(place, memo={}), loads, "0")
            em.line(f"atomicAdd(&sums[int({known[id(store.index[0])]})], "
                    f"{word}({known[id(store.value)]}));")
        em.line("__syncthreads();")
        with em.block(each):
            sum_word = unsigned_type(form.operands[store.access].dtype)
            value = em.named(sum_word, f"{sum_word}(shared_load(&sums[b]))", "sum")
            stride = self.param(("gathered", store.access, 0), "int64", f"g{store.access}_0")
            cuda_word = "unsigned long long" if sum_word == "u64" else "unsigned"
            em.line(f"if ({value} != 0) atomicAdd(reinterpret_cast<{cuda_word} *>("
                    f"{pointers[store.access]} + b * {stride}), {value});")

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            blocks = blocks_for(form.points, THREADS * POINTS_OF_A_THREAD, MOST_BLOCKS)
            return Layout(blocks, (THREADS, 1), form.points)

        return layout
