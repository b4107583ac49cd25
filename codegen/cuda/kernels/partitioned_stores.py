"""Stores of many points at computed indices, in the order of the points, by all of a GPU.

Places belong to owners, by a hash of their addresses, and points are sorted by owners first: a pass
of a stable radix sort, whose digit is the owner.  Then a warp does the points of each owner.

1. `CountKernel`: each block counts the owners of a chunk of points.
2. `OffsetKernel`: for each owner, where the points of each chunk begin among those of the owner.
3. `BaseKernel`: where the points of each owner begin.
4. `SortKernel`: each block puts the addresses and values of its chunk there, in their order.
5. `JoinKernel`: each warp does what the points of an owner say, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusec.core.records import replace

from ...kernels.loop_ir import Stage, Store
from ...kernels.specialise import LoopForm
from ..module import WARP
from ..scalars.emitter import CudaValue, memory_type
from .launch_plan import Geometry, Layout
from .nest_kernel import KernelWriter, ThreadPoint, in_memory
from .ordered_stores import OWNER_THREADS, OwnerKernel, owner_of, way_of

OWNERS = 1024
CHUNKS = 256  # as many as a block has threads: one each in `OffsetKernel`
MANY_POINTS = 1 << 16  # fewer are done by owners that go over all of them
MOST_BYTES = 1 << 32  # of memory for the sorted points
_WORD = 4


def is_partitioned(form: LoopForm) -> bool:
    """Whether the points of a form that owners may do are sorted by owners first."""
    if not form.nest.sequential or way_of(form) is not OwnerKernel or not form.is_static:
        return False
    stores = form.nest.stages[0].stores
    operands = [form.operands[s.access] for s in stores]
    return form.points >= MANY_POINTS and _bytes_of_points(form) <= MOST_BYTES and all(
        (o.strides, o.gathered) == (operands[0].strides, operands[0].gathered) for o in operands)


def _bytes_of_points(form: LoopForm) -> int:
    """Of sorted points: an address and values."""
    return 8 * (1 + len(form.nest.stages[0].stores)) * form.points


def _points_of_a_chunk(form: LoopForm) -> int:
    """A multiple of a block's threads."""
    return -(-form.points // (CHUNKS * OWNER_THREADS)) * OWNER_THREADS


class _Sorting(KernelWriter):
    """The memory that the kernels share: counts by owner and chunk, bases of owners, then addresses
    and values of points, sorted."""

    has_barriers = True
    max_threads = OWNER_THREADS

    @property
    def stage_of_points(self) -> Stage:
        (stage,) = self.form.nest.stages
        return stage

    def count(self, owner: str, chunk: str) -> str:
        return f"{self._shared()} + ({owner} * {CHUNKS} + {chunk}) * {_WORD}"

    def base(self, owner: str) -> str:
        """The bases of all owners, and the end of the last."""
        return f"{self._shared()} + ({OWNERS * CHUNKS} + {owner}) * {_WORD}"

    def sorted_word(self, number: int, place: str) -> str:
        """The address (number 0) or a value of a sorted point."""
        points = self.param(("work",), self.index_kind, "points")
        return f"{self._shared()} + {_HEAD} + (i64({points}) * {number} + {place}) * 8"

    def _shared(self) -> str:
        return self.param(("partials",), "pointer", "sorted", is_written=True)

    @contextmanager
    def own_points(self) -> Iterator[ThreadPoint]:
        """Tiles of this block's chunk, one point a thread."""
        form, em, index = self.form, self.em, self.index
        points = self.param(("work",), self.index_kind, "points")
        chunk = self.param(("row_points",), self.index_kind, "chunk")
        begin = em.named(index, f"{index}(blockIdx.x) * {chunk}", "begin")
        end = em.named(index, f"{points} - {begin} < {chunk} ? {points} : {begin} + {chunk}", "end")
        pointers = [self.pointer(n) for n in range(len(form.operands))]
        with em.block(f"for ({index} tile = {begin}; tile < {end}; tile += {OWNER_THREADS})"):
            at = em.named(index, f"tile + {index}(threadIdx.x)", "at")
            valid = em.named("bool", f"{at} < {end}", "valid")
            number = em.named(index, f"{valid} ? {at} : {points} - 1", "id")
            counters = self.decoded(number, list(range(len(form.extents))))
            before = {loop: c for loop, c in counters.items() if loop != form.axis}
            yield ThreadPoint(counters, self.moved(pointers, before), valid=valid)

    def address(self, place: ThreadPoint, loads: dict[int, str]) -> str:
        """Of the first store of this point; its indices are checked."""
        stage, em = self.stage_of_points, self.em
        known = self._evaluate(
            [*(i for s in stage.stores for i in s.index), *stage.checks], place, loads, "0")
        first = stage.stores[0]
        at = self._computed(first.access, [known[id(i)] for i in first.index], place)
        return em.named("u64", f"reinterpret_cast<u64>({at})", "key")

    def owner(self, key: str) -> str:
        size = self.form.operands[self.stage_of_points.stores[0].access].dtype.itemsize
        return self.em.named("i32", f"i32({owner_of(self.em, key, size, str(OWNERS))})", "owner")

    def words(self, name: str, count: int) -> None:
        """An array of 32-bit words in shared memory."""
        self.head.append(f"__shared__ i32 {name}[{count}];")
        self.shared_bytes += _WORD * count

    def geometry(self) -> Geometry:
        def layout(form: LoopForm) -> Layout:
            return Layout(self.blocks, (self.threads, 1), form.points,
                          partials=_HEAD + _bytes_of_points(form),
                          row_points=_points_of_a_chunk(form))

        return layout

    blocks, threads = CHUNKS, OWNER_THREADS


_HEAD = _WORD * (OWNERS * CHUNKS + OWNERS + 64)  # bytes before the sorted points


class CountKernel(_Sorting):
    """See the module docstring; the order in which it counts is of no account."""

    def body(self) -> None:
        em = self.em
        self.words("counts", OWNERS)
        with em.block(f"for (int o = int(threadIdx.x); o < {OWNERS}; o += {OWNER_THREADS})"):
            em.line("shared_store(&counts[o], 0);")
        em.line("__syncthreads();")
        with self.own_points() as place:
            owner = self.owner(self.address(place, self._loads(self.stage_of_points, place)))
            em.line(f"if ({place.valid}) atomicAdd(&counts[{owner}], 1);")
        em.line("__syncthreads();")
        with em.block(f"for (int o = int(threadIdx.x); o < {OWNERS}; o += {OWNER_THREADS})"):
            em.line(f"store<i32>({self.count('o', 'blockIdx.x')}, shared_load(&counts[o]));")


class OffsetKernel(_Sorting):
    """A block for each owner, a thread for each chunk."""

    blocks = OWNERS

    def body(self) -> None:
        em = self.em
        self.words("scanned", CHUNKS)
        own = em.named("i32", f"load<i32>({self.count('blockIdx.x', 'threadIdx.x')})", "own")
        em.line(f"shared_store(&scanned[threadIdx.x], {own});")
        em.line(f"scan_words<{CHUNKS}, {OWNER_THREADS}>(scanned);")
        em.line(f"store<i32>({self.count('blockIdx.x', 'threadIdx.x')}, "
                f"shared_load(&scanned[threadIdx.x]) - {own});")
        em.line(f"if (threadIdx.x == {OWNER_THREADS - 1}) store<i32>({self.base('blockIdx.x')}, "
                f"shared_load(&scanned[{CHUNKS - 1}]));")


class BaseKernel(_Sorting):
    """One block turns the numbers of the owners' points into bases."""

    blocks = 1

    def body(self) -> None:
        em = self.em
        self.words("scanned", OWNERS)
        loop = f"for (int o = int(threadIdx.x); o < {OWNERS}; o += {OWNER_THREADS})"
        with em.block(loop):
            em.line(f"shared_store(&scanned[o], load<i32>({self.base('o')}));")
        em.line(f"scan_words<{OWNERS}, {OWNER_THREADS}>(scanned);")
        with em.block(loop):
            em.line(f"store<i32>({self.base('o + 1')}, shared_load(&scanned[o]));")
        em.line(f"if (threadIdx.x == 0) store<i32>({self.base('0')}, 0);")


class SortKernel(_Sorting):
    """Warps take turns, in each of which a thread's rank among those with its owner is their number
    before it."""

    def body(self) -> None:
        em, stage = self.em, self.stage_of_points
        self.words("next", OWNERS)
        with em.block(f"for (int o = int(threadIdx.x); o < {OWNERS}; o += {OWNER_THREADS})"):
            em.line(f"shared_store(&next[o], load<i32>({self.base('o')}) + "
                    f"load<i32>({self.count('o', 'blockIdx.x')}));")
        with self.own_points() as place:
            loads = self._loads(stage, place)
            key = self.address(place, loads)
            owner = self.owner(key)
            at = self._place(owner, str(place.valid))
            with em.block(f"if ({place.valid})"):
                em.line(f"store<u64>({self.sorted_word(0, at)}, {key});")
                self._store_values(stage, replace(place, memo=dict(place.memo)), loads, at)

    def _place(self, owner: str, valid: str) -> str:
        """Where this thread's point goes: behind those of its owner before it."""
        em, at = self.em, self.em.fresh("to")
        same = em.named("u32", f"__match_any_sync(0xffffffffu, {valid} ? {owner} : -1)", "same")
        em.line(f"i32 {at} = __popc({same} & ((1u << (threadIdx.x % {WARP})) - 1u));")
        with em.block(f"for (int warp = 0; warp < {OWNER_THREADS // WARP}; ++warp)"):
            em.line("__syncthreads();")
            with em.block(f"if (int(threadIdx.x) / {WARP} == warp)"):
                em.line(f"if ({valid}) {at} += shared_load(&next[{owner}]);")
                em.line("__syncwarp();")
                em.line(f"if ({valid} && {same} >> (threadIdx.x % {WARP}) == 1u) "
                        f"shared_store(&next[{owner}], {at} + 1);")
        return at

    def _store_values(
        self, stage: Stage, place: ThreadPoint, loads: dict[int, str], at: str
    ) -> None:
        values = self._evaluate([s.value for s in stage.stores], place, loads, "0")
        for number, s in enumerate(stage.stores):
            kind = memory_type(self.form.operands[s.access].dtype)
            self.em.line(f"store<{kind}>({self.sorted_word(number + 1, at)}, "
                         f"{in_memory(values[id(s.value)])});")


class JoinKernel(OwnerKernel, _Sorting):
    """A warp for each owner.

    Of the points of a tile with one address the first thread does all, in the order of the points.
    """

    blocks, threads, max_threads = OWNERS, WARP, WARP

    def body(self) -> None:
        em, stage = self.em, self.stage_of_points
        arrays = {s.access: self._array(s, n) for n, s in enumerate(stage.stores)}
        begin = em.named("i32", f"load<i32>({self.base('blockIdx.x')})", "begin")
        end = em.named("i32", f"load<i32>({self.base('blockIdx.x + 1')})", "end")
        with em.block(f"for (i32 tile = {begin}; tile < {end}; tile += {WARP})"):
            at = em.named("i32", "tile + i32(threadIdx.x)", "at")
            mine = em.named("bool", f"{at} < {end}", "mine")
            key = em.named("u64", f"{mine} ? load<u64>({self.sorted_word(0, at)}) : 0", "key")
            same = em.named("u32", f"__match_any_sync(0xffffffffu, {key})", "same")
            em.line("__syncwarp();")
            with em.block(f"if ({mine})"):
                for number, s in enumerate(stage.stores):
                    em.line(f"shared_store(&{arrays[s.access]}[threadIdx.x], "
                            f"{self._sorted(number, s, at)});")
            em.line("__syncwarp();")
            with em.block(f"if ({mine} && ({same} & ((1u << threadIdx.x) - 1u)) == 0)"):
                self.store_all(stage, self._addresses(stage, key), arrays, same)

    @contextmanager
    def each_of(self, same: str) -> Iterator[None]:
        """See `OwnerKernel.each_of`: ``same`` is a mask of lanes."""
        em, rest = self.em, self.em.fresh("rest")
        with em.block(f"for (u32 {rest} = {same}; {rest} != 0; {rest} &= {rest} - 1)"):
            em.line(f"const int j = __ffs(int({rest})) - 1;")
            yield

    def _sorted(self, number: int, store: Store, at: str) -> CudaValue | str:
        kind = memory_type(self.form.operands[store.access].dtype)
        return f"load<{kind}>({self.sorted_word(number + 1, at)})"

    def _addresses(self, stage: Stage, key: str) -> dict[int, str]:
        """Of each store: the parts of a number are as far from each other everywhere."""
        first, em = self.pointer(stage.stores[0].access), self.em
        places = {}
        for s in stage.stores:
            name = places[s.access] = em.fresh("place")
            em.line(f"char *const {name} = reinterpret_cast<char *>({key}) + "
                    f"({self.pointer(s.access)} - {first});")
        return places

    def geometry(self) -> Geometry:
        return _Sorting.geometry(self)


SORTED = (CountKernel, OffsetKernel, BaseKernel, SortKernel, JoinKernel)
