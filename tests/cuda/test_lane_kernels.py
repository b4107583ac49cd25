"""Loops over lanes as one CUDA kernel, a thread a lane: values, launches, exceptions, its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from by_seed import defined
from fake_cupy import as_gpu
from lane_programs import PROGRAMS
from lanes import LaneWriter, arguments

import fusec
from fusec.bench.cases.lane_cases import CASES, LaneCase
from fusec.codegen.cuda.lanes import lane_call, lane_nodes, lane_printer

DEVICE = "/device:CUDAHOST:0"
RNG = np.random.default_rng(9)
OF_NAME = {p.name: p for p in PROGRAMS}
LANES = 300


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    fusec.clear_caches()


def listed(x: Any) -> list[Any]:
    return [*x] if isinstance(x, tuple | list) else [x]


def assert_same_bits(got: Any, want: Any) -> None:
    for one, other in zip(listed(got), listed(want), strict=True):
        one = one.get() if hasattr(one, "get") else np.asarray(one)
        assert (one.dtype, one.tobytes()) == (other.dtype, np.asarray(other).tobytes())


def on_device(f: Callable[..., Any], *args: Any, axes: Any = 0) -> tuple[Any, str]:
    """The results of the emulated device, and how its loops run."""
    lanes = fusec.vmap(f, axes)
    with fusec.device(DEVICE):
        got = lanes(*args)
        text = "\n".join(c.reason for c in lanes.concrete(*args).control)
    return got, text


# ---------------------------------------------------------------------------------- ensembles


def in_one_launch(case: LaneCase, dtype: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of the GPU for an ensemble, which has the bits of the CPU's."""
    args = case.args(dtype, LANES)
    want = fusec.vmap(case.function(dtype))(*args)
    with as_gpu(monkeypatch) as cupy:
        g, there = fusec.vmap(case.function(dtype)), [cupy.asarray(x) for x in args]
        for _ in range(2):  # the second one is prepared, and sends constants
            assert_same_bits(g(*there), want)
        cupy.calls.clear()
        got = g(*there)
        calls = [*cupy.calls]
        assert_same_bits(got, want)
    return calls


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_ensembles(case: LaneCase, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = in_one_launch(case, "float64", monkeypatch)
    assert [c for c in calls if c != "to host"] == ["lanes"], "but how it ended"


@pytest.mark.repeats
@pytest.mark.parametrize("case", [c for c in CASES if "float32" in c.dtypes], ids=lambda c: c.name)
def test_ensembles_of_float32(case: LaneCase, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = in_one_launch(case, "float32", monkeypatch)
    assert [c for c in calls if c != "to host"] == ["lanes"]


def test_no_order_of_threads_counts() -> None:
    f, (m,) = CASES[0].function("float64"), CASES[0].args("float64", 700)
    with fusec.config.override(cuda_host_seed=5):
        assert_same_bits(on_device(f, m)[0], fusec.vmap(f)(m))


@pytest.mark.repeats
@pytest.mark.parametrize("seed", [1003, 1004, 1005, 1006, 1008, 1009, 1010])  # with loops
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numbers of which every operation is exact."""
    monkeypatch.setattr(lane_nodes, "LEAST_LANES", 0)
    text = LaneWriter(seed).text()
    f = defined(text, f"<lanes {seed}>", {"np": np})["lane"]
    args = arguments(seed)
    got, how = on_device(f, *args)
    assert how.startswith("one kernel, a thread a lane"), text
    for k, x in enumerate(got):
        np.testing.assert_array_equal(x, [f(*one)[k] for one in zip(*args, strict=True)], text)


# ------------------------------------------------------------------------------ arrays of a lane


@pytest.mark.parametrize("name", ["inserted", "edit_distance", "loop_then_product",
                                  "before_and_after", "found_with_break"])
def test_programs_of_the_corpus(name: str) -> None:
    program = OF_NAME[name]
    got, how = on_device(program.f, *program.arguments(LANES))
    assert how.startswith("one kernel, a thread a lane")
    assert_same_bits(got, fusec.vmap(program.f)(*program.arguments(LANES)))


def sieved(n: Any) -> Any:
    """Arrays of 200 elements, which are in global memory; two change places."""
    old, new, steps = np.arange(200), np.zeros(200, int), 0
    while steps < n:
        for k in range(1, 200):
            new[k] = old[k - 1] + (old[k] * 3) % 7
        old, new = new, old
        steps += 1
    return old[::50], steps


def exchanged(n: Any, x: Any) -> Any:
    """Small ones, in kernels of the lane's own: a gather, a sum, a scan."""
    a, b, k = x * 1.0, np.cumsum(x), 0
    while k < n:
        a, b = b[::-1] * 0.5, np.maximum(a, a[np.argmin(a)] + 1.0)
        k += 1
    return a, b


def of_complex_numbers(z: Any) -> Any:
    w, k = np.zeros(40, complex), 0
    while abs(z) < 9.0 and k < 40:
        w[k] = z
        z = z * z + 0.3j
        k += 1
    return w, k


@pytest.mark.parametrize(("f", "args"), [
    (sieved, (RNG.integers(0, 5, LANES),)),
    (exchanged, (RNG.integers(0, 7, LANES), RNG.uniform(0, 2, (LANES, 5)))),
    (of_complex_numbers, (RNG.uniform(-1, 1, LANES) + 1j * RNG.uniform(-1, 1, LANES),)),
], ids=lambda x: getattr(x, "__name__", ""))
def test_arrays_of_a_lane(f: Callable[..., Any], args: Any) -> None:
    got, how = on_device(f, *args)
    assert how.startswith("one kernel, a thread a lane")
    assert_same_bits(got, fusec.vmap(f)(*args))


def test_more_lanes_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where threads have arrays in global memory there are only so many."""
    monkeypatch.setattr(lane_call, "BLOCKS_WITH_ARRAYS", 1)
    n = RNG.integers(0, 4, 1000)
    assert_same_bits(on_device(sieved, n)[0], fusec.vmap(sieved)(n))


# ------------------------------------------------------------------------------------ exceptions


def last(x: Any, n: Any) -> Any:
    k, total = 0, 0.0
    while k < n:
        total += x[k]
        k += 1
    return total


def refused(x: Any, n: Any) -> Any:
    k = 0
    while k < n:
        k += 1
        if k == 40:
            raise ValueError("40 steps")
    return x[0] * k


def gathered(x: Any, n: Any) -> Any:
    k, at = 0, np.arange(4)
    while k < n:
        x = x[at + k // 10] * 0.5
        k += 1
        x = np.concatenate([x, x, x])
    return x.sum()


@pytest.mark.parametrize("bad", [[77], [30, 31, 290], [0], [299]])
@pytest.mark.parametrize(("f", "error"), [
    (last, "IndexError: index 12 is out of bounds for axis 0 with size 12"),
    (refused, "ValueError: 40 steps"), (gathered, "IndexError: index 12 is out of bounds")])
def test_the_first_lane_that_fails_is_named(
    f: Callable[..., Any], error: str, bad: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _, message = error.partition(": ")
    x, n = RNG.normal(size=(LANES, 12)), RNG.integers(0, 12, LANES)
    n[bad] = [500 + k for k in range(len(bad))]
    good = np.minimum(n, 12)
    with pytest.raises(Exception, match=message) as on_cpu:
        fusec.vmap(f)(x, n)
    with pytest.raises(Exception, match=message) as caught:
        on_device(f, x, n)
    assert type(caught.value).__name__ == name
    assert str(caught.value) == str(on_cpu.value)
    assert caught.value.__notes__ == on_cpu.value.__notes__
    assert caught.value.__notes__[-1] == f"in lane {bad[0]}"
    with as_gpu(monkeypatch) as cupy:
        g, there = fusec.vmap(f), cupy.asarray(x)
        want = fusec.vmap(f)(x, good)
        for _ in range(2):
            assert_same_bits(g(there, cupy.asarray(good)), want)
        with pytest.raises(Exception, match=message) as prepared:
            g(there, cupy.asarray(n))
        # Python does not run a lane of a GPU's arrays: the line is that of the compiled code.
        line, lane = prepared.value.__notes__
        assert line.startswith("raised by compiled code\n") and f"in {f.__name__}\n" in line
        assert [lane] == on_cpu.value.__notes__


# --------------------------------------------------------------------------------------- its end


def counted(n: Any) -> Any:
    x, k = 0.5, 0
    while k < n:
        x = x * 0.5 + 0.1
        k += 1
    return x


@pytest.mark.parametrize("gpu", [False, True])
def test_ctrl_c_ends_lanes(gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raised.append(time.perf_counter())
        raise KeyboardInterrupt

    raised: list[float] = []
    n = np.full(LANES, 10)
    n[30:] = 1 << 40  # hours
    monkeypatch.setattr(lane_printer, "MOST_SPENT", 1)  # the emulated device sees accesses alone
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with as_gpu(monkeypatch) as cupy, fusec.device(None if gpu else DEVICE):
            g = fusec.vmap(counted)
            given = [cupy.asarray(x) if gpu else x for x in (np.minimum(n, 10), n)]
            g(given[0])
            g(given[0])
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(KeyboardInterrupt):
                g(given[1])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - raised[0] < 5.0


# ------------------------------------------------------------------------------ what is the CPU's


def test_few_lanes_are_the_cpus() -> None:
    n = np.arange(lane_nodes.LEAST_LANES - 1)
    lanes = fusec.vmap(counted)
    with fusec.device(DEVICE):
        assert_same_bits(lanes(n), fusec.vmap(counted)(n))
        assert "with fewer than 256 a CPU has done all" in str(fusec.explain(lanes, n))


def test_calls_of_libraries_in_a_lane_are_the_cpus() -> None:
    def sorts(x: Any) -> Any:
        k = 0
        while x[0] > 0 and k < 5:
            x = np.sort(x) - 0.1
            k += 1
        return x

    x = RNG.uniform(0, 1, (LANES, 4))
    lanes = fusec.vmap(sorts)
    with fusec.device(DEVICE):
        assert_same_bits(lanes(x), fusec.vmap(sorts)(x))
        assert "in a lane is a call of a library" in str(fusec.explain(lanes, x))
