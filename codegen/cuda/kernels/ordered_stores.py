"""Stores at computed indices, which several points may share: in the order of the points.

Three ways, the first that serves: integers that are joined with the element there (counts, sums,
logic) by atomic operations, since any order gives the same, and so sums of floats where
`config.deterministic` is false or the program permits it (fp="fast"); where the array is not read
otherwise, by blocks that own places; else one thread, point after point.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from fusec import config
from fusec.core.records import replace

from ...kernels.loop_ir import Nest, Stage, Store, walk
from ...kernels.specialise import LoopForm
from ..scalars.emitter import BOOL, CudaEmitter, CudaValue, memory_type, type_name, unsigned_type
from ..scalars.scalar_ops import emit_operation, operation_text
from .elementwise_kernels import MapKernel
from .launch_plan import Geometry, Layout, blocks_for
from .nest_kernel import KernelWriter, ThreadPoint, in_memory
from .shared_sums import SharedSumKernel, places_of

OWNER_THREADS = 256
POINTS_OF_AN_OWNER = 2048  # where there are more points, more blocks share the places
MAX_OWNERS = 128


def way_of(form: LoopForm) -> type[KernelWriter]:
    """The kernel that stores in order."""
    if _any_order_serves(form):
        return SharedSumKernel if places_of(form) else AtomicKernel
    return OwnerKernel if _may_be_owned(form) else OneThreadKernel


def _any_order_serves(form: LoopForm) -> bool:
    """Whether all that is stored is joined exactly, in words, and not read otherwise."""
    nest = form.nest
    stores = [s for stage in nest.stages for s in stage.stores]
    buffers = {form.operands[s.access].buffer for s in stores}
    return all((s.combine and _is_word(form, s)) or _may_be_added(form, s) for s in stores) and (
        not _reads(form, nest, buffers))


def _may_be_owned(form: LoopForm) -> bool:
    """Whether a point stores to one place, or the parts of a number, and nothing else reads it."""
    (stage,) = form.nest.stages
    places = {tuple(map(id, s.index)) for s in stage.stores}
    buffers = {form.operands[s.access].buffer for s in stage.stores}
    return len(places) == 1 and len(buffers) == 1 and all(s.index for s in stage.stores) and (
        not _reads(form, form.nest, buffers))


def _is_word(form: LoopForm, store: Store) -> bool:
    dtype = form.operands[store.access].dtype
    return dtype.kind in "iu" and dtype.itemsize >= 4


def _may_be_added(form: LoopForm, store: Store) -> bool:
    """Whether a float may be added in any order, which other last bits are taken for."""
    dtype = form.operands[store.access].dtype
    return (store.any_order or not config.deterministic) and store.combine == "add" and (
        dtype.kind == "f" and dtype.itemsize >= 4)


def _reads(form: LoopForm, nest: Nest, buffers: set[int]) -> bool:
    return any(e.op == "load" and form.operands[e.attr].buffer in buffers
               for e in walk(nest.roots))


class AtomicKernel(MapKernel):
    """Points in any order; each store is one atomic step."""

    def put_at(self, store: Store, address: str, value: CudaValue) -> None:
        em, dtype = self.em, self.form.operands[store.access].dtype
        if dtype.kind == "f":
            word = "float" if dtype.itemsize == 4 else "double"
            em.line(f"atomicAdd(reinterpret_cast<{word} *>({address}), {value});")
            return
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


class OwnerKernel(KernelWriter):
    """Each block owns places, by a hash of their addresses, and goes over all points for them.

    A tile of points, one a thread, writes the addresses that the block owns to shared memory, with
    the values.  Of those with one address the first thread does all, in the order of the points.
    """

    has_barriers = True
    max_threads = OWNER_THREADS

    def body(self) -> None:
        form, em, index = self.form, self.em, self.index
        (stage,) = form.nest.stages
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        points = self.param(("work",), self.index_kind, "points")
        self.head.append(f"__shared__ u64 keys[{OWNER_THREADS}];")
        self.shared_bytes = 8 * OWNER_THREADS
        arrays = {s.access: self._array(s, n) for n, s in enumerate(stage.stores)}
        with em.block(f"for ({index} base = 0; base < {points}; base += {OWNER_THREADS})"):
            at = em.named(index, f"base + {index}(threadIdx.x)", "at")
            valid = em.named("bool", f"{at} < {points}", "valid")
            number = em.named(index, f"{valid} ? {at} : {points} - 1", "id")
            loops = list(range(len(form.extents)))
            counters = self.decoded(number, loops)
            before = {loop: c for loop, c in counters.items() if loop != form.axis}
            place = ThreadPoint(counters, self.moved(pointers, before), valid=valid)
            self._tile(stage, place, arrays)

    def _array(self, store: Store, number: int) -> str:
        dtype = self.form.operands[store.access].dtype
        self.head.append(f"__shared__ {memory_type(dtype)} values{number}[{OWNER_THREADS}];")
        self.shared_bytes += dtype.itemsize * OWNER_THREADS
        return f"values{number}"

    def _tile(self, stage: Stage, place: ThreadPoint, arrays: dict[int, str]) -> None:
        em = self.em
        loads = self._loads(stage, place)
        indices = [i for s in stage.stores for i in s.index]
        known = self._evaluate([*indices, *stage.checks], place, loads, "0")
        addresses = {}
        for s in stage.stores:
            name = addresses[s.access] = em.fresh("place")
            at = self._computed(s.access, [known[id(i)] for i in s.index], place)
            em.line(f"char *const {name} = {at};")
        first = stage.stores[0].access
        size = self.form.operands[first].dtype.itemsize
        key = em.named("u64", f"reinterpret_cast<u64>({addresses[first]})", "key")
        owner = owner_of(em, key, size, "gridDim.x")
        mine = em.named("bool", f"{place.valid} && {owner} == blockIdx.x", "mine")
        em.line("__syncthreads();")
        em.line(f"shared_store(&keys[threadIdx.x], {mine} ? {key} : u64(0));")
        with em.block(f"if ({mine})"):
            values = self._evaluate([s.value for s in stage.stores],
                                    replace(place, memo=dict(place.memo)), loads, "0")
            for s in stage.stores:
                em.line(f"shared_store(&{arrays[s.access]}[threadIdx.x], "
                        f"{in_memory(values[id(s.value)])});")
        em.line("__syncthreads();")
        self._store_mine(stage, key, mine, addresses, arrays)

    def _store_mine(
        self, stage: Stage, key: str, mine: str, addresses: dict[int, str], arrays: dict[int, str]
    ) -> None:
        """For an address, its first thread."""
        em, last = self.em, self.em.fresh("leads")
        em.line(f"bool {last} = {mine};")
        with em.block(f"for (int j = 0; {last} && j < int(threadIdx.x); ++j)"):
            em.line(f"{last} = shared_load(&keys[j]) != {key};")
        with em.block(f"if ({last})"):
            self.store_all(stage, addresses, arrays, key)

    def store_all(
        self, stage: Stage, addresses: dict[int, str], arrays: dict[int, str], same: str
    ) -> None:
        """What the tile's points with this thread's address say; see `each_of`."""
        em = self.em
        for s in stage.stores:
            dtype, array = self.form.operands[s.access].dtype, arrays[s.access]
            value = em.fresh("value")
            begin = f"load<{memory_type(dtype)}>({addresses[s.access]})" if s.combine else (
                f"shared_load(&{array}[threadIdx.x])")
            em.line(f"{type_name(dtype)} {value} = {_held(dtype, begin)};")
            with self.each_of(same):
                new = em.value(dtype, _held(dtype, f"shared_load(&{array}[j])"))
                if s.combine:
                    new = emit_operation(em, s.combine, dtype, [CudaValue(value, dtype), new])
                em.line(f"{value} = {new};")
            em.line(f"store<{memory_type(dtype)}>({addresses[s.access]}, "
                    f"{in_memory(CudaValue(value, dtype))});")

    @contextmanager
    def each_of(self, same: str) -> Iterator[None]:
        """The points ``j`` from this thread's on with its address, in order: those with its key."""
        em = self.em
        with em.block(f"for (int j = int(threadIdx.x); j < {OWNER_THREADS}; ++j)"), \
                em.block(f"if (shared_load(&keys[j]) == {same})"):
            yield

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            blocks = blocks_for(form.points, POINTS_OF_AN_OWNER, MAX_OWNERS)
            return Layout(blocks, (OWNER_THREADS, 1), form.points)

        return layout


def owner_of(em: CudaEmitter, key: str, size: int, owners: str) -> str:
    """The number of the owner of an element of so many bytes, by its address."""
    mixed = em.named("u32", f"u32({key} / {size}) * 2654435761u", "mixed")
    return f"u32((u64({mixed}) * {owners}) >> 32)"


def _held(dtype: np.dtype, text: str) -> str:
    """An element as a value."""
    return f"{text} != 0" if dtype == BOOL else text


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
            self.run_stage(stage, ThreadPoint(counters, self.moved(pointers, before)))

    def geometry(self) -> Geometry:
        return lambda form: Layout(1, (1, 1), form.points)
