"""Large arrays go to a GPU and back through pinned memory, beside kernels, on streams that do their
work late, in any order that events allow."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu
from fake_streams import CUDARuntimeError, Event

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.driver import arriving_memory, pinned_buffers
from fusec.codegen.cuda.driver.cupy_arrays import CupyArrays

SEEDS = range(5)  # 0: who waits makes the device do as little as may be
ROWS = 40
X = np.random.default_rng(0).normal(size=(ROWS, 64))  # 20 pieces


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_buffers, "LEAST_BYTES", 4096)
    monkeypatch.setattr(pinned_buffers, "PIECE", 1024)
    monkeypatch.setattr(pinned_buffers, "MOST", 3)


def a_gpu(monkeypatch: pytest.MonkeyPatch, seed: int) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch, seed) as fake:
        fake.pool.keeps = True
        yield fake


@pytest.fixture(params=SEEDS)
def cupy(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[FakeCupy]:
    """GPUs that do their work in several orders."""
    yield from a_gpu(monkeypatch, request.param)


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    """One that does no more than somebody waits for."""
    yield from a_gpu(monkeypatch, 0)


def arrays_of_gpu() -> CupyArrays:
    backend: Any = backends.backend("gpu")
    arrays: CupyArrays = backend.arrays
    return arrays


def waiting(fake: FakeCupy, stream: Any) -> int:
    """How much of a stream's work is not done."""
    return len(fake.driver.streams._queues.get(stream.ptr, ()))


def mixed(x: np.ndarray, y: np.ndarray) -> Any:
    z = np.sin(x) * y
    low = np.partition(z, 3, axis=0)
    return z, low * 2 + x, (low + z).sum(axis=0)


def test_mixed_programs(cupy: FakeCupy) -> None:
    """Kernels on the GPU, a library's function on the CPU, copies each way; no piece is lost."""
    f, host, there = fusec.jit(mixed, device="GPU:0"), fusec.jit(mixed), fusec.jit(mixed)
    kept = []
    for number in range(5):
        x, y = X + number, X[::-1] * number
        want = host(x, y)
        kept.append((f(x, y), want))
        kept.append((there(cupy.asarray(x), cupy.asarray(y)), want))
        x[...] = y[...] = np.nan
        for got, wanted in kept:
            for one, other in zip(got, wanted, strict=True):
                one = one.get() if isinstance(one, FakeArray) else one
                np.testing.assert_allclose(one, other, rtol=1e-12)
    assert {"to device, pinned", "to host, pinned"} <= {*cupy.calls}


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x[::-1], lambda x: x[:, ::2],
                                    lambda x: x.astype("c16"), lambda x: x[None, 3:].T])
def test_layouts(lazy: FakeCupy, layout: Callable[..., np.ndarray]) -> None:
    x = layout(X)
    got = fusec.jit(lambda x: x * 2 + 1, device="GPU:0")(x)
    np.testing.assert_array_equal(got, x * 2 + 1)


def test_the_array_may_be_changed_when_the_call_has_returned(cupy: FakeCupy) -> None:
    """It has been read by then, though the GPU may not have begun."""
    weights, x = X.copy(), cupy.asarray(X)
    f = fusec.jit(lambda x: x * weights + 1)
    results = []
    for number in range(6):
        weights[...] = X + number
        results.append(f(x))
    weights[...] = np.nan
    for number, got in enumerate(results):
        np.testing.assert_allclose(got.get(), X * (X + number) + 1, rtol=1e-12, atol=1e-12)
    assert "to device, pinned" in cupy.calls


def test_a_copy_waits_for_no_kernel(lazy: FakeCupy) -> None:
    """Neither an array that arrives, nor one that was computed before these kernels."""
    arrays, x = arrays_of_gpu(), lazy.asarray(X)
    with arrays.call():
        stream = lazy.streams.current
        first = arrays.bring(X)
        after = arrays.moment(X.nbytes)
        stream.does(lambda: None)  # a kernel
        stream.does(lambda: None)
        lazy.calls.clear()
        arrays.bring(X + 1)
        np.testing.assert_array_equal(arrays.fetch(first, after), X)
        assert waiting(lazy, stream) >= 2
        np.testing.assert_array_equal(arrays.fetch(first), X)
    assert x is not None and waiting(lazy, stream) == 0


def test_pieces_take_turns(lazy: FakeCupy) -> None:
    """Several pieces are on their way while the host copies the next, and no more than there are
    buffers, which are made when they are needed."""
    arrays = arrays_of_gpu()
    assert lazy.pinned.used == 0
    there = arrays.bring(X)
    assert lazy.pinned.used == 3 * 1024
    arrays.fetch(there)
    assert lazy.pinned.used == 6 * 1024
    assert lazy.calls.count("to device, pinned") == lazy.calls.count("to host, pinned") == 20
    for _ in range(3):
        arrays.fetch(arrays.bring(X))
    assert lazy.pinned.used == 6 * 1024


def test_small_arrays_go_in_the_kernels_stream(lazy: FakeCupy) -> None:
    fusec.jit(lambda x: x * 2, device="GPU:0")(X[:3])
    assert lazy.pinned.used == 0 and "to device" in lazy.calls


def test_an_array_arrives_where_no_kernel_reads(lazy: FakeCupy) -> None:
    """In memory that the kernels' stream has let go one may not have run yet."""
    f, x = fusec.jit(lambda x: x * 2), lazy.asarray(X)
    f(x), f(x)
    y = f(x)
    del x
    there = arrays_of_gpu().bring(X - 5)
    np.testing.assert_array_equal(y.get(), X * 2)
    np.testing.assert_array_equal(arrays_of_gpu().fetch(there), X - 5)


@pytest.mark.parametrize("is_slow", [True, False])
def test_memory_is_kept_until_kernels_have_read_it(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    """A program that is faster than the GPU has no more of it than it may."""
    if is_slow:  # it does nothing before somebody waits
        monkeypatch.setattr(Event, "done", property(
            lambda self: self.moment is None or self.moment.is_done))
    monkeypatch.setattr(arriving_memory, "MOST_BYTES", 3 * X.nbytes)
    weights, x = X.copy(), cupy.asarray(X)
    f = fusec.jit(lambda x: np.sin(x) * weights)
    results = [f(x)]
    for _ in range(1, 12):
        weights += 1
        results.append(f(x))
        kept = arrays_of_gpu().driver.arriving._kept
        assert sum(k.nbytes for k in kept) <= 4 * X.nbytes
    want = np.sin(X)
    for number, got in enumerate(results):
        np.testing.assert_allclose(got.get(), want * (X + number), rtol=1e-12, atol=1e-12)


def test_memory_that_was_let_go_is_found_when_the_gpu_is_full(lazy: FakeCupy) -> None:
    arrays = arrays_of_gpu()
    arrays.bring(X)
    gc.collect()
    assert len(arrays.driver.arriving._kept) == 1
    lazy.pool.room, lazy.cached = 1000, 1 << 20
    arrays.bring(X + 1)
    assert "free_all_blocks" in lazy.calls and not arrays.driver.arriving._kept[1:]


def test_without_pinned_memory(lazy: FakeCupy, capfd: pytest.CaptureFixture[str]) -> None:
    """It is said once, and arrays go in the kernels' stream."""
    lazy.pinned.room = 0
    f = fusec.jit(mixed, device="GPU:0")
    for _ in range(3):
        for one, other in zip(f(X, X), fusec.jit(mixed)(X, X), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not any("pinned" in call for call in lazy.calls)
    said = capfd.readouterr().err
    words = "no pinned memory (cudaErrorMemoryAllocation: out of memory)"
    assert said.count(f"copies to GPU 0: {words}") == 1 == said.count(f"from GPU 0: {words}")
    assert words in str(fusec.devices()) and words in str(fusec.explain(f, X, X))


def test_with_little_pinned_memory(lazy: FakeCupy, capfd: pytest.CaptureFixture[str]) -> None:
    lazy.pinned.room = 2048
    arrays = arrays_of_gpu()
    there = [arrays.bring(X + number) for number in range(3)]
    assert "copied with 2 buffers of 3" in capfd.readouterr().err
    for number in range(3):
        np.testing.assert_array_equal(arrays.fetch(there[number]), X + number)


def test_threads(cupy: FakeCupy) -> None:
    f, wrong = fusec.jit(mixed, device="GPU:0"), []
    want = [fusec.jit(mixed)(X + n, X) for n in range(3)]

    def call(n: int) -> None:
        for _ in range(4):
            for one, other in zip(f(X + n, X), want[n], strict=True):
                if not np.allclose(one, other, rtol=1e-12):
                    wrong.append(n)

    f(X, X)
    threads = [threading.Thread(target=call, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Stop(BaseException):
    pass


def test_what_is_left_of_a_copy_comes_before_the_next(
    lazy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may go another way than through pinned memory."""
    arrays = arrays_of_gpu()
    with monkeypatch.context() as patch, pytest.raises(Stop):
        def stopped(*args: Any) -> None:
            raise Stop

        patch.setattr(lazy.cuda.runtime, "memcpyAsync", lambda *args: [
            copy(*args), copies.append(args), copies[2:] and stopped()])
        copies: list[Any] = []
        copy = FakeCupy._copy.__get__(lazy)
        arrays.bring(X * 3)
    gc.collect()
    arrays.driver.arriving.wait()
    assert waiting(lazy, arrays.driver.copies.to_device.stream) > 0
    with arrays.driver.copies.to_device.lock:
        there = arrays.bring(X)
    np.testing.assert_array_equal(arrays.fetch(there), X)
    lazy.driver.synchronize()
    np.testing.assert_array_equal(arrays.fetch(there), X)


@pytest.mark.parametrize("at", [0, 1, 4, 19])
@pytest.mark.parametrize("way", ["bring", "fetch"])
def test_a_copy_that_is_interrupted(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, way: str, at: int
) -> None:
    """When a piece has been asked for and nothing is known of it: its buffer is not used again
    before the GPU has done with it."""
    arrays = arrays_of_gpu()
    there, runtime = arrays.bring(X), cupy.cuda.runtime
    copy, left = runtime.memcpyAsync, [at]

    def stopped(*args: Any) -> None:
        copy(*args)
        left[0] -= 1
        if left[0] == -1:
            raise Stop

    monkeypatch.setattr(runtime, "memcpyAsync", stopped)
    with pytest.raises(Stop):
        arrays.bring(X * 3) if way == "bring" else arrays.fetch(there)
    if way == "fetch":  # the GPU reads nothing that is given back
        assert waiting(cupy, arrays.driver.copies.to_host.stream) == 0
    more = [arrays.bring(X + number) for number in range(4)]
    for number, each in enumerate(more):
        np.testing.assert_array_equal(arrays.fetch(each), X + number)
    np.testing.assert_array_equal(arrays.fetch(there), X)


def test_a_copy_in_the_middle_of_another(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal's handler makes one: it goes another way."""
    arrays, runtime = arrays_of_gpu(), cupy.cuda.runtime
    copy, inner = runtime.memcpyAsync, []

    def between(*args: Any) -> None:
        copy(*args)
        if len(inner) < 3 and args[3] < 3:
            inner.append(None)
            inner.append(arrays.fetch(arrays.bring(X * 7)))

    arrays.bring(X)  # whose memory is the next one's
    monkeypatch.setattr(runtime, "memcpyAsync", between)
    np.testing.assert_array_equal(arrays.fetch(arrays.bring(X + 1)), X + 1)
    found = [each for each in inner if each is not None]
    assert len(found) == 3
    for each in found:
        np.testing.assert_array_equal(each, X * 7)


def test_a_copy_that_fails(lazy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the kernels that were asked for: CUDA tells of their faults anywhere."""
    arrays = arrays_of_gpu()
    there = arrays.bring(X)

    def fails(*args: Any) -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")

    monkeypatch.setattr(lazy.cuda.runtime, "memcpyAsync", fails)
    for copy in (lambda: arrays.bring(X), lambda: arrays.fetch(there)):
        with pytest.raises(RuntimeError, match="work on GPU 0 has failed: cudaErrorIllegalA"):
            copy()


def test_a_program_that_captures(lazy: FakeCupy) -> None:
    """Its copies are done later, again and again: not through buffers that others have by then."""
    arrays = arrays_of_gpu()
    kept = arrays.bring(X)
    with lazy.cuda.Stream(non_blocking=True) as stream, arrays.call():
        held = arrays.bring(X)
        stream.begin_capture()
        assert not arrays.driver.copies.is_for(X.nbytes) and arrays.moment(X.nbytes) is None
        del held  # what was read on this stream is kept until it captures no more
        assert [k.passed for k in arrays.driver.arriving._kept] == [None]
        arrays.driver.arriving.give_back()
        stream.end_capture()
        arrays.driver.arriving.give_back()
        assert [k.passed is None for k in arrays.driver.arriving._kept] == [False]
    np.testing.assert_array_equal(arrays.fetch(kept), X)
