"""Stores at computed indices, which several points may share: in the order of the points.

Three ways, the first that serves: integers that are joined with what is there (counts, sums, logic)
by atomic operations, since any order gives the same; blocks of points that are known to store to
different places by the threads of one block; else one thread, point after point.
"""

from __future__ import annotations

from contextlib import ExitStack

from fusec.codegen.loop_ir import Nest, Store, walk
from fusec.codegen.specialise import LoopForm

from .elementwise import MapKernel
from .emitter import Operand, memory_type, unsigned_type
from .launch_plan import Geometry, Layout
from .nest_kernel import KernelWriter, Place
from .scalar_ops import operation_text

CHUNK_THREADS = 512


def way_of(form: LoopForm) -> type[KernelWriter]:
    """The kernel that stores in order."""
    if _any_order_serves(form):
        return AtomicKernel
    if form.nest.chunk and len(form.extents) == 1:
        return ChunkKernel
    return OneThreadKernel


def _any_order_serves(form: LoopForm) -> bool:
    """Whether all that is stored is joined exactly, in words, and not read otherwise."""
    nest = form.nest
    stores = [s for stage in nest.stages for s in stage.stores]
    buffers = {form.operands[s.access].buffer for s in stores}
    return all(s.combine and _is_word(form, s) for s in stores) and not _reads(form, nest, buffers)


def _is_word(form: LoopForm, store: Store) -> bool:
    dtype = form.operands[store.access].dtype
    return dtype.kind in "iu" and dtype.itemsize >= 4


def _reads(form: LoopForm, nest: Nest, buffers: set[int]) -> bool:
    return any(e.op == "load" and form.operands[e.attr].buffer in buffers
               for e in walk(nest.roots))


class AtomicKernel(MapKernel):
    """Points in any order; each store is one atomic step."""

    def put_at(self, store: Store, address: str, value: Operand) -> None:
        em, dtype = self.em, self.form.operands[store.access].dtype
        word, kind = unsigned_type(dtype), memory_type(dtype)
        place = em.fresh("place")
        cuda_word = "unsigned long long" if word == "u64" else "unsigned"
        em.line(f"{cuda_word} *const {place} = reinterpret_cast<{cuda_word} *>({address});")
        if store.combine == "add":
            em.line(f"atomicAdd({place}, {word}({value}));")
            return
        old, seen = em.fresh("old"), em.fresh("seen")
        em.line(f"{cuda_word} {old} = load<{word}>(reinterpret_cast<char *>({place})), {seen};")
        with em.block("do"):
            em.line(f"{seen} = {old};")
            args = [em.value(dtype, f"{kind}({seen})"), value]
            joined = em.value(dtype, operation_text(em, store.combine, dtype, args))
            em.line(f"{old} = atomicCAS({place}, {seen}, {word}({joined}));")
        em.line(f"while ({old} != {seen});")


class ChunkKernel(KernelWriter):
    """One block: a chunk of points at once, then the next."""

    has_barriers = True
    max_threads = CHUNK_THREADS

    def body(self) -> None:
        form, em, index = self.form, self.em, self.index
        (stage,) = form.nest.stages
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        n, chunk = self.extent(0), form.nest.chunk
        with em.block(f"for ({index} base = 0; base < {n}; base += {chunk})"):
            loop = f"for ({index} at = threadIdx.x; at < {chunk} && base + at < {n}; " \
                   f"at += blockDim.x)"
            with em.block(loop):
                point = em.named(index, "base + at", "i")
                self.run_stage(stage, Place({0: point}, pointers, point))
            em.line("__syncthreads();")

    def geometry(self) -> Geometry:
        return lambda form: Layout(1, (CHUNK_THREADS, 1), form.points)


class OneThreadKernel(KernelWriter):
    """Point after point."""

    max_threads = 32

    def body(self) -> None:
        form, em = self.form, self.em
        (stage,) = form.nest.stages
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        with ExitStack() as stack:
            counters = {}
            for loop in range(len(form.extents)):
                name = counters[loop] = em.fresh("i")
                stack.enter_context(em.block(
                    f"for ({self.index} {name} = 0; {name} < {self.extent(loop)}; ++{name})"))
            before = {loop: c for loop, c in counters.items() if loop != form.axis}
            self.run_stage(stage, Place(counters, self.moved(pointers, before)))

    def geometry(self) -> Geometry:
        return lambda form: Layout(1, (1, 1), form.points)
