"""Recycled result memory: ordinary owning arrays, caps, threads, forks, exit."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import tracemalloc
from io import BytesIO

import numpy as np
import pytest
from forks import does_well

from fusec import config
from fusec.runtime import memory
from fusec.runtime.native import allocator, numpy_api


@pytest.fixture(autouse=True)
def fresh_cache():
    memory.release_memory()
    yield
    memory.set_memory_cap(config.memory_cap_bytes)
    memory.release_memory()


def ours(array: np.ndarray) -> bool:
    return numpy_api.handler_name(array) == memory.HANDLER_NAME


def test_the_allocator_is_in_use_here() -> None:
    status = memory.allocator_status()
    assert status.available, status.reason


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.complex128, bool, ">f8"])
@pytest.mark.parametrize("order", ["C", "F", (1, 0, 2), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(40, 50, 60), (2, 3, 4), (0, 5, 1), (1, 100000, 1)])
def test_arrays_are_ordinary(shape: tuple[int, ...], order: object, dtype: object) -> None:
    array = memory.empty(shape, np.dtype(dtype), order)  # type: ignore[arg-type]
    axes = memory.axis_order(order, 3)  # type: ignore[arg-type]
    like = np.empty([shape[axis] for axis in axes], dtype).transpose(np.argsort(axes))
    assert type(array) is np.ndarray
    assert array.flags.owndata and array.base is None
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.writeable and array.flags.aligned
    assert array.flags.c_contiguous == like.flags.c_contiguous
    assert array.flags.f_contiguous == like.flags.f_contiguous
    if array.size:
        assert array.strides == like.strides
    array[...] = 1
    assert array.real.astype(int).sum() == array.size


def test_small_and_object_arrays_are_numpys() -> None:
    assert not ours(memory.empty((10,)))
    objects = memory.empty((100_000,), object)
    assert not ours(objects) and objects[5] is None
    assert ours(memory.empty((100_000,)))


@pytest.mark.parametrize("order", ["K", (0, 0), (1,)])
def test_bad_order(order: object) -> None:
    for shape in ((2, 3), (1000, 1000)):
        with pytest.raises(ValueError, match="slowest axis first"):
            memory.empty(shape, np.float64, order)  # type: ignore[arg-type]


def test_negative_and_impossible_sizes_raise_as_numpy_does() -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        memory.empty((-1000, -1000))
    with pytest.raises((MemoryError, ValueError)):
        memory.empty((1 << 50,))
    memory.empty((100_000,))[...] = 1.0


def test_blocks_are_reused() -> None:
    first = memory.empty((1_000_000,))
    address = first.ctypes.data
    assert address % 64 == 0
    del first
    before = memory.memory_stats()
    again = memory.empty((1000, 999), np.float64)
    after = memory.memory_stats()
    assert again.ctypes.data == address
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 0)
    assert after.live_bytes - before.live_bytes == before.retained_bytes >= 8_000_000


def test_size_classes_waste_at_most_an_eighth() -> None:
    for size in [65536, 65537, 73728, 73729, 100_000, 131072, 131073, 999_999, 1 << 24]:
        before = memory.memory_stats().live_bytes
        array = memory.empty((size,), np.uint8)
        block = memory.memory_stats().live_bytes - before
        assert size <= block <= size * 9 / 8 + 1
        array[-1] = 1
        del array


def test_views_keep_the_block() -> None:
    array = memory.empty((200_000,))
    view = array[10:20]
    view[...] = 7.0
    address = array.ctypes.data
    del array
    gc.collect()
    other = memory.empty((200_000,))
    other[...] = 0.0
    assert other.ctypes.data != address and view.tolist() == [7.0] * 10


def test_cap_and_eviction() -> None:
    memory.set_memory_cap(3 << 20)
    arrays = [memory.empty((1 << 20,), np.uint8) for _ in range(6)]
    del arrays
    assert memory.memory_stats().retained_bytes == 3 << 20
    old = memory.memory_stats().evictions
    del_me = memory.empty((2 << 20,), np.uint8)
    del del_me
    stats = memory.memory_stats()
    assert stats.retained_bytes <= 3 << 20 and stats.evictions > old
    address = memory.empty((2 << 20,), np.uint8).ctypes.data
    assert memory.empty((2 << 20,), np.uint8).ctypes.data == address
    memory.set_memory_cap(0)
    assert memory.memory_stats().retained_bytes == 0
    too_big = memory.empty((1 << 20,), np.uint8)
    del too_big
    assert memory.memory_stats().retained_blocks == 0


def test_release() -> None:
    array = memory.empty((1 << 20,))
    del array
    assert memory.memory_stats().retained_bytes >= 8 << 20
    memory.release_memory()
    stats = memory.memory_stats()
    assert (stats.retained_bytes, stats.retained_blocks) == (0, 0)


def test_negative_cap() -> None:
    with pytest.raises(ValueError, match="number of bytes >= 0"):
        memory.set_memory_cap(-1)


def test_resize_copies_and_keeps_values() -> None:
    array = memory.empty((100_000,))
    array[...] = np.arange(100_000)
    array.resize((300_000,), refcheck=False)
    assert ours(array)
    assert array[:100_000].tolist() == list(range(100_000)) and not array[100_000:].any()
    array.resize((10,), refcheck=False)
    assert array.tolist() == list(range(10))
    array.resize((200_000,), refcheck=False)
    assert array[:10].tolist() == list(range(10))


def test_save_pickle_copy() -> None:
    array = memory.empty((50_000, 2))
    array[...] = np.arange(100_000).reshape(50_000, 2)
    stored = BytesIO()
    np.save(stored, array)
    stored.seek(0)
    assert (np.load(stored) == array).all()
    assert (pickle.loads(pickle.dumps(array, protocol=5)) == array).all()
    assert not ours(array.copy()) and (array.copy() == array).all()


def test_tracemalloc_sees_big_results() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        array = memory.empty((1_000_000,))
        held = tracemalloc.get_traced_memory()[0] - before
        del array
        after = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held >= 8_000_000 and after < 100_000


def _hammer(seed: int, wrong: list[int]) -> None:
    random = np.random.default_rng(seed)
    held: list[np.ndarray] = []
    for _ in range(400):
        array = memory.empty((int(random.integers(1, 60_000)),), np.int64)
        array[...] = seed
        held.append(array)
        if len(held) > 6:
            victim = held.pop(int(random.integers(6)))
            wrong.append(int((victim != seed).sum()))


def test_threads_hammering() -> None:
    wrong: list[int] = []
    threads = [threading.Thread(target=_hammer, args=(seed, wrong)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong and not any(wrong)


def test_nothing_leaks() -> None:
    live = memory.memory_stats().live_bytes
    references = sys.getrefcount(np.dtype(np.float64))
    for _ in range(2000):
        memory.empty((20_000,))
    assert memory.memory_stats().live_bytes == live
    assert abs(sys.getrefcount(np.dtype(np.float64)) - references) < 50


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child() -> None:
    array = memory.empty((100_000,))
    array[...] = 3.0

    def in_child() -> bool:
        other = memory.empty((100_000,))
        other[...] = 4.0
        return bool(array.sum() == 300_000.0 and other.sum() == 400_000.0)

    assert does_well(in_child)


def test_arrays_may_die_with_the_interpreter() -> None:
    script = ("import sys, numpy as np\nfrom fusec.runtime import memory\n"
              "class Late:\n"
              "    def __init__(self): self.array = memory.empty((300_000,))\n"
              "    def __del__(self): self.array = None\n"
              "sys.late = Late(); np.late = memory.empty((300_000,)); kept = Late()\n"
              "print('done')")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_unknown_numpy_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = numpy_api._expected_layout
    monkeypatch.setattr(numpy_api, "_expected_layout",
                        lambda: numpy_api.ArrayLayout(**{**vars(layout()), "base": 8}))
    monkeypatch.setattr(allocator, "code", allocator.code.__wrapped__)
    numpy_api.array_layout.cache_clear()
    try:
        native, status = memory._make()
    finally:
        monkeypatch.undo()
        numpy_api.array_layout.cache_clear()
    assert native is None and not status.available
    assert "keep base in another place" in status.reason
