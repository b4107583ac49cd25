"""Loops as one kernel: its launches, where threads wait, who may end it."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulated import Run
from fake_cupy import as_gpu

import fusec
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.emulation.faults import KernelFault
from fusec.codegen.cuda.persistent import choice, launch_shape
from fusec.codegen.cuda.persistent.hazards import ON_CHIP, Hazards, PendingAccesses
from fusec.codegen.kernels import kernel_nodes

DEVICE = "/device:CUDAHOST:0"
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def persistent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", "persistent")
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)


def heat(u: Any, n: Any) -> Any:
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def solved(a: Any, b: Any, least: Any) -> Any:
    """Conjugate gradients, until the residual is small."""
    x, r = np.zeros(len(b)), b.copy()
    p, rr, count = r.copy(), (r * r).sum(), 0
    while rr > least:
        q = (a * p).sum(1)
        alpha = rr / (p * q).sum()
        x = x + alpha * p
        r = r - alpha * q
        new = (r * r).sum()
        p = r + (new / rr) * p
        rr, count = new, count + 1
    return x, count


def system(n: int) -> tuple[np.ndarray, np.ndarray]:
    a = RNG.uniform(0, 1, (n, n))
    return a @ a.T + n * np.eye(n), RNG.uniform(0, 1, n)


# ----------------------------------------------------------------------- what the driver is asked


@pytest.mark.parametrize("steps", [3, 1000])
def test_a_loop_is_one_launch(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    u = RNG.uniform(0, 1, 300)
    with as_gpu(monkeypatch) as cupy:
        g = fusec.jit(heat)
        g(cupy.asarray(u), np.int64(5))
        cupy.calls.clear()
        got = g(cupy.asarray(u), np.int64(steps)).get()
        assert cupy.calls.count("persistent") == 1 and "graph" not in cupy.calls
        assert cupy.calls.count("to device") <= 1  # the number of steps
    np.testing.assert_array_equal(got, fusec.jit(heat)(u.copy(), np.int64(steps)))


def test_iterations_cost_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many calls of fusec's Python for 10 iterations as for 10,000, in the thread that calls;
    the emulation of the device is not counted."""
    def calls(n: int) -> int:
        count = 0

        def note(frame: Any, event: str, arg: Any) -> None:
            nonlocal count
            file = frame.f_code.co_filename
            count += event == "call" and "/emulation/" not in file and (
                "/codegen/" in file or "/runtime/" in file)

        for _ in range(3):
            g(u, np.int64(n))
        sys.setprofile(note)
        try:
            g(u, np.int64(n))
        finally:
            sys.setprofile(None)
        return count

    with as_gpu(monkeypatch) as cupy:
        g, u = fusec.jit(heat), cupy.asarray(RNG.uniform(0, 1, 40))
        assert 0 < calls(10) == calls(10_000)


@pytest.mark.parametrize("seed", [0, 3, 8])
@pytest.mark.parametrize("n", [12, 40_000])
def test_one_block_and_several_have_the_bits_of_the_cpu(n: int, seed: int) -> None:
    u = RNG.uniform(0, 1, n)
    with fusec.config.override(cuda_host_seed=seed):
        got = fusec.jit(heat, device=DEVICE)(u.copy(), np.int64(7))
    np.testing.assert_array_equal(got, fusec.jit(heat)(u.copy(), np.int64(7)))


@pytest.mark.parametrize("n", [9, 300])
def test_a_condition_on_data_is_the_kernels_own(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = system(n)
    with as_gpu(monkeypatch, seed=4) as cupy:
        g = fusec.jit(solved)
        arrays = cupy.asarray(a), cupy.asarray(b)
        g(*arrays, 1e-16)
        cupy.calls.clear()
        x, count = g(*arrays, 1e-16)
        assert cupy.calls.count("persistent") == 1 and cupy.calls.count("to host") <= 2
    np.testing.assert_allclose(x.get(), np.linalg.solve(a, b), rtol=1e-7, atol=1e-9)
    assert 1 < count < 40


def test_sizes_of_calls_need_no_other_kernel() -> None:
    g = fusec.jit(heat, device=DEVICE)
    for n in (50, 60, 70, 9000):
        u = RNG.uniform(0, 1, n)
        np.testing.assert_array_equal(g(u.copy(), np.int64(4)),
                                      fusec.jit(heat)(u.copy(), np.int64(4)))
    assert g.trace_count <= 2


def test_the_gradient_of_a_loop_is_two_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def energy(u: Any) -> Any:
        v = u * 1.0
        for _ in range(20):
            v[1:-1] = v[1:-1] * v[2:] + 0.1 * v[:-2]
        return (v * v).sum()

    u = RNG.uniform(0, 1, 200)
    want = fusec.jit(fusec.grad(energy))(u)
    with as_gpu(monkeypatch) as cupy:
        g, there = fusec.jit(fusec.grad(energy)), cupy.asarray(u)
        g(there)
        cupy.calls.clear()
        np.testing.assert_allclose(g(there).get(), want, rtol=1e-13)
        assert cupy.calls.count("persistent") == 2


def test_a_loop_is_a_part_of_a_prepared_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels before and after it are in one graph with it; its number goes on by the GPU."""
    def f(u: Any, w: Any) -> Any:
        u, total = u * 2, 0.0
        for _ in range(6):
            u[1:-1] = u[2:] * 0.5 + u[:-2]
            total = total + u.max()
        return u + total, np.sqrt(w)

    u, w = RNG.uniform(0, 1, 50), RNG.uniform(0, 1, 9)
    with as_gpu(monkeypatch) as cupy:
        cupy.pool.keeps = True
        g, args = fusec.jit(f), (cupy.asarray(u), cupy.asarray(w))
        for _ in range(6):
            one, other = g(*args)
            np.testing.assert_allclose(one.get(), f(u.copy(), w)[0], rtol=1e-14)
            np.testing.assert_array_equal(other.get(), np.sqrt(w))
            cupy.calls.clear()
            del one, other
        results = g(*args)
        assert len(results) == 2 and cupy.calls == ["graph"]
        assert "one CUDA graph" in str(fusec.explain(g, *args))


def changed_copy(a: Any) -> Any:
    b = a * 2
    for k in range(5):
        b[k % 3] = b[k % 3 - 1] + 1
    return b


def changed_argument(a: Any) -> Any:
    for k in range(5):
        a[k % 3] = a[k % 3 - 1] + 1
    return a[1:], a.sum()


def changed_constant(a: Any) -> Any:
    b = np.zeros(a.shape)
    for k in range(5):
        b[k % 3] = b[k % 3 - 1] + a[k % 3]
    return b


@pytest.mark.parametrize("f", [changed_copy, changed_argument, changed_constant])
def test_prepared_loops_begin_with_what_they_change(
    f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fuzzer's c1269: the result is the operand's own memory where a step runs it, and not
    where a call is prepared."""
    a = RNG.uniform(0, 1, (3, 4))
    with as_gpu(monkeypatch) as cupy:
        cupy.pool.keeps, g = True, fusec.jit(f)
        for _ in range(5):
            given, mine = cupy.asarray(a.copy()), a.copy()
            got, want = g(given), f(mine)
            for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)),
                                  strict=True):
                one = one.get() if hasattr(one, "get") else one
                np.testing.assert_allclose(one, other, rtol=1e-14)
            np.testing.assert_array_equal(given.get(), mine)
        assert g.traces[0].gpu_call.function is not None


def test_a_wrong_index_in_a_prepared_loop_is_numpys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, i: Any) -> Any:
        for k in range(5):
            x = x[i + k] * 2
        return x

    x, i = np.arange(12.0), np.arange(12)[::-1].copy() % 8
    with as_gpu(monkeypatch) as cupy:
        g, there = fusec.jit(f), cupy.asarray(x)
        for _ in range(3):
            np.testing.assert_array_equal(g(there, cupy.asarray(i)).get(), f(x, i))
        with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0") as raised:
            g(there, cupy.asarray(i + 4))
        assert "x = x[i + k] * 2" in raised.value.__notes__[0]
        np.testing.assert_array_equal(g(there, cupy.asarray(i)).get(), f(x, i))


# ---------------------------------------------------------------------------------- its end


def endless(x: Any) -> Any:
    while x.sum() > -1.0:
        x = x * 0.5 + 0.25
    return x


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("n", [12, 20_000])
def test_ctrl_c_ends_a_kernel(n: int, gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raised.append(time.perf_counter())
        raise KeyboardInterrupt

    raised: list[float] = []
    x = RNG.uniform(0, 1, n)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        if gpu:
            with as_gpu(monkeypatch) as cupy:
                _interrupted(fusec.jit(endless), cupy.asarray(x))
        else:
            _interrupted(fusec.jit(endless, device=DEVICE), x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - raised[0] < 5.0  # of the emulated device; a GPU is a thousandth


@pytest.mark.parametrize("n", [12, 20_000, 4_000_000])
def test_a_kernel_looks_soon_whether_it_is_to_end(n: int) -> None:
    """By the figures of an H200, within a tenth of a second, at any size."""
    (control,) = fusec.jit(endless, device=DEVICE).concrete(np.zeros(n)).control
    us = re.search(r"an iteration is estimated at (\S+) us", control.reason)
    cost = re.search(r"spent \+= (\d+);", control.asm["cu"])
    most = re.search(r"spent >= (\d+)\)", control.asm["cu"])
    assert us and cost and most
    iterations = -(-int(most[1]) // int(cost[1]))
    assert iterations <= 64 and iterations * float(us[1]) < 0.1 * 1e6


def _interrupted(g: Any, x: Any) -> None:
    """The second time the call is prepared, on a GPU."""
    g.concrete(x)
    for _ in range(2):
        _interrupted_once(g, x)


def _interrupted_once(g: Any, x: Any) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(KeyboardInterrupt):
        g(x)


def test_an_interrupted_loop_leaves_no_half_of_an_iteration() -> None:
    def counted(x: Any) -> None:
        while x[0] >= 0:
            x[1:] = x[1:] + 1
            x[0] = x[0] + 1

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    x, g = np.zeros(40), fusec.jit(counted, device=DEVICE)
    try:
        _interrupted(g, x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(x, x[0])


def test_a_counter_that_wraps_is_watched() -> None:
    """126 + 2 is -128 in eight bits: the loop never ends."""
    def wrapping(x: Any) -> Any:
        i = np.int8(0)
        while i < np.int8(127):
            x = x * 0.5 + 0.1
            i = i + np.int8(2)
        return x

    (control, *_) = fusec.jit(wrapping, device=DEVICE).concrete(np.zeros(9)).control
    assert "asked_to_stop(a" in control.asm["cu"]


def after_a_check(a: Any, x: Any, i: Any) -> Any:
    t = x[i].sum()  # a wrong index reads the first element, 0
    while a.sum() < 1000.0:
        a = a + t * t
    return a


def after_a_loop_that_checks(a: Any, x: Any, i: Any) -> Any:
    t = 0.5
    for k in range(3):
        t = x[i[k]]
        a[1:] = a[:-1] * 0.5 + t
    while a.sum() < 1000.0:
        a = a + t
    return a


@pytest.mark.parametrize("f", [after_a_check, after_a_loop_that_checks])
def test_a_loop_after_a_check_that_failed_ends(
    f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with numbers of nobody, and the host looks at the end."""
    x = np.r_[0.0, np.arange(1.0, 10.0)]
    with as_gpu(monkeypatch, seed=1) as cupy:
        cupy.pool.keeps, g = True, fusec.jit(f)
        for _ in range(3):
            args = np.ones(30), x, np.arange(1, 4)
            np.testing.assert_allclose(g(*map(cupy.asarray, args)).get(), f(*args))
            with pytest.raises(IndexError, match="index 11 is out of bounds"):
                g(cupy.asarray(np.ones(30)), cupy.asarray(x), cupy.asarray(np.array([11, 0, 0])))


def test_without_pinned_memory_a_loop_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch) as cupy:
        cupy.pinned.room = 0
        x = RNG.uniform(0, 1, 30)
        got = fusec.jit(heat)(cupy.asarray(x), np.int64(70)).get()
    np.testing.assert_array_equal(got, fusec.jit(heat)(x, np.int64(70)))


# ------------------------------------------------------------------------------------ explained


def test_explain_says_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", "")
    u = np.zeros(1000)
    text = str(fusec.explain(fusec.jit(heat, device=DEVICE), u, np.int64(3)))
    assert "one kernel that does all of it; an iteration is estimated at" in text
    monkeypatch.setattr(launch_shape, "GRID_BARRIER_US", 1e6)
    monkeypatch.setattr(launch_shape, "BLOCK_BARRIER_US", 1e6)
    text = str(fusec.explain(fusec.jit(heat, device=DEVICE), u, np.int64(3)))
    assert "text that launches" in text and "not one for all iterations: an iteration is" in text


def test_what_follows_a_loop_is_no_part_of_an_iteration() -> None:
    """The argument gets its values once; an iteration reads and writes an array."""
    u = np.zeros((2048, 2048))
    text = str(fusec.explain(fusec.jit(heat, device=DEVICE), u, np.int64(3)))
    us = launch_shape.GRID_BARRIER_US + 2 * u.nbytes / (1e3 * launch_shape.STAYING_GBS)
    assert f"an iteration is estimated at {us:.2g} us" in text


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra cuda")
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_no_load_goes_through_the_cache_that_is_not_coherent(architecture: str) -> None:
    """What a kernel writes before a barrier it may read after it."""
    a, b = system(40)
    for g, args in ((fusec.jit(heat, device=DEVICE), (np.zeros(90), np.int64(3))),
                    (fusec.jit(solved, device=DEVICE), (a, b, 1e-9))):
        (control, *_) = g.concrete(*args).control
        (module,) = control.asm.modules
        ptx = nvrtc.compile(module, architecture).ptx
        assert "ld.global.nc" not in ptx
        assert "bar.sync" in ptx and "membar.gl" in ptx


# ------------------------------------------------------------------------------------- barriers


def test_what_is_read_waits_for_what_is_written() -> None:
    hazards = Hazards()
    assert not hazards.wait_for(["a"], ["b"])
    assert not hazards.wait_for(["a"], ["c"])
    assert hazards.wait_for(["b"], ["d"]) == "grid"
    assert not hazards.wait_for(["c"], ["e"])  # behind the same barrier
    assert hazards.wait_for([], ["c"]) == "grid"  # which was read
    assert not hazards.wait_for([], ["f", ON_CHIP])
    assert hazards.wait_for(["f"], [ON_CHIP]) == "grid"
    assert hazards.wait_for(["g"], [ON_CHIP]) == "block"


def test_an_iteration_begins_with_what_the_last_one_left() -> None:
    entries: dict[int, PendingAccesses] = {}
    scopes: list[str] = []
    for _ in range(2):
        hazards = Hazards(entries)
        number = hazards.begin_loop()
        scopes.append(hazards.wait_for(["a"], []))
        hazards.wait_for([], ["b"])
        hazards.wait_for([], ["a"])
        hazards.end_loop(number)
        entries = hazards.entries
    assert scopes == ["", "grid"]


_GRID = """
#ifndef fusec_grid_barrier
#define fusec_grid_barrier(arrived) ((void)(arrived))
#endif
extern "C" __global__ void __launch_bounds__(64) k(int *a, int *out) {
  __shared__ int mine[64];
  mine[threadIdx.x] = int(blockIdx.x * 64 + threadIdx.x);
  a[blockIdx.x * 64 + threadIdx.x] = int(blockIdx.x) + 1;
  LEAVE
  fusec_grid_barrier(0);
  const int from = (blockIdx.x + 1) % gridDim.x;
  if (threadIdx.x < 32) {
    __barrier_sync_count(1, 32);
    out[blockIdx.x * 64 + threadIdx.x] = a[from * 64 + threadIdx.x] + 10 * mine[threadIdx.x];
  }
  fusec_grid_barrier(0);
  a[blockIdx.x * 64 + threadIdx.x] = 0;
}
"""


def grid_run(source: str, seed: int) -> Callable[..., Any]:
    run = Run(source, seed)
    kernels = tuple(fusec.core.records.replace(k, is_cooperative=True) for k in run.module.kernels)
    object.__setattr__(run.module, "kernels", kernels)
    return run


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_blocks_of_the_emulated_device_wait_for_each_other(seed: int) -> None:
    run = grid_run(_GRID.replace("LEAVE", ""), seed)
    a, out = run("k", 3, 64, np.zeros(192, np.int32), np.zeros(192, np.int32))
    want = np.zeros((3, 64), np.int32)
    want[:, :32] = np.array([[2], [3], [1]]) + 10 * np.arange(192).reshape(3, 64)[:, :32]
    np.testing.assert_array_equal(out, want.reshape(-1))
    assert not a.any()


@pytest.mark.parametrize("leaves", ["blockIdx.x == 1", "threadIdx.x == 7"])
def test_a_block_that_leaves_others_waiting_is_found(leaves: str) -> None:
    run = grid_run(_GRID.replace("LEAVE", f"if ({leaves}) return;"), 0)
    with pytest.raises(KernelFault, match=r"barrier|wait"):
        run("k", 3, 64, np.zeros(192, np.int32), np.zeros(192, np.int32))


def halved(u: Any, n: Any) -> Any:
    """One barrier an iteration."""
    for _ in range(n):
        u = u * 0.5 + 0.25
    return u


def test_one_block_where_it_is_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its barriers and its bytes."""
    monkeypatch.setattr(choice, "forced", "")

    def blocks(n: int) -> int:
        (control,) = fusec.jit(halved, device=DEVICE).concrete(np.zeros(n), np.int64(3)).control
        assert "one kernel that does all of it" in control.reason
        program: Any = control.run.program
        shape = program.code.shape
        gpu = SimpleNamespace(resident_blocks=lambda *_: 132)
        return int(launch_shape.LaunchShape(
            shape.made, gpu, shape.loaded, shape.kernel).at({})[0])

    assert [blocks(n) for n in (4000, 7000, 60_000)] == [1, 4, 30]


def of_rows(c: Any, f: Any, n: Any) -> Any:
    """Products of one row, and of one column, of more than small matrices."""
    for _ in range(n):
        f = f * 0.5 + np.tensordot(c, f, axes=1) + (f.T @ c[:, None])[:, 0]
    return f


def test_products_of_a_row_are_a_part_of_the_kernel() -> None:
    c, f = RNG.uniform(0, 0.1, 9), RNG.uniform(0, 1, (9, 8000))
    g = fusec.jit(of_rows, device=DEVICE)
    np.testing.assert_allclose(g(c, f, np.int64(4)), of_rows(c, f, 4), rtol=1e-12)
    (control, *_) = g.concrete(c, f, np.int64(4)).control
    assert "one kernel that does all of it" in control.reason
