"""Ctrl-C, time-outs, signals' handlers, threads and forks while the emulated device works."""

from __future__ import annotations

import copyreg
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from emulated import Run
from interrupted_calls import campaign

import fusec
from fusec.codegen.cuda.emulated_backend import DRIVER
from fusec.codegen.cuda.emulation import launches
from fusec.codegen.cuda.emulation.faults import KernelFault
from fusec.codegen.cuda.emulation.work import EmulatedKernel

DEVICE = "/device:CUDAHOST:0"
SOURCE = r"""
extern "C" __global__ void count(volatile int *x, int n) {  // two accesses a turn
  for (int i = 0; i < n; i++) x[threadIdx.x] = x[threadIdx.x] + 1;
}
extern "C" __global__ void wait(volatile int *x) { while (x[0] == 0) {} }
extern "C" __global__ void add(int *x, int n) { x[threadIdx.x] += n; }
extern "C" __global__ void turn(const int *x, int *y, int n) {
  __shared__ int line[64];
  for (int i = 0; i < n; i++) {
    line[threadIdx.x] = x[threadIdx.x] + i;
    __syncthreads();
    y[threadIdx.x] = line[(threadIdx.x + 1) % 64];
    __syncthreads();
  }
}
extern "C" __global__ void deep(int *x) {
  volatile int own[20000];
  for (int i = 20000; i--; ) own[i] = i;
  x[0] = own[x[0]];
}
"""
I32 = np.int32


class Stop(Exception):
    """The exception of a time-out's handler: no error of the device's."""


@contextmanager
def after(seconds: float, handler: Callable[..., Any]) -> Iterator[None]:
    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def stop(*_: Any) -> None:
    raise Stop


def read(run: Run, address: int, size: int) -> np.ndarray:
    out = np.empty(size, I32)
    run.driver.copy_out(out, address)
    return out


@pytest.mark.parametrize("seed", [0, 4])
def test_what_is_interrupted_is_gone_on_with(seed: int) -> None:
    """Nothing is lost and nothing is done twice: others may wait for it."""
    run, n = Run(SOURCE, seed), 20_000_000
    x = run.put(np.zeros(1, I32))
    run.launch("add", 1, 1, [x, 5])
    run.launch("count", 1, 1, [x, n])
    run.launch("add", 1, 1, [x, 7])
    for _ in range(3):
        with pytest.raises(Stop), after(0.02, stop):
            run.driver.synchronize()
    assert len(run.driver.streams) == 2, "it is the second that goes on"
    assert read(run, x, 1)[0] == n + 12


def test_what_nobody_reads_is_given_up() -> None:
    run = Run(SOURCE)
    x, y, z = (run.put(np.zeros(1, I32)) for _ in range(3))
    run.launch("add", 1, 1, [y, 1])
    run.launch("wait", 1, 1, [x])
    with pytest.raises(Stop), after(0.05, stop):
        read(run, x, 1)
    run.launch("add", 1, 1, [z, 3])
    run.driver.free(x)
    assert read(run, z, 1)[0] == 3 and read(run, y, 1)[0] == 1
    run.driver.free(y)
    run.driver.free(z)
    run.driver.synchronize()
    assert run.driver.arena.used == 0


def test_what_somebody_reads_is_not_given_up() -> None:
    """Though the memory is given back: a later kernel has read it."""
    run = Run(SOURCE)
    x, y, n = run.put(np.arange(64, dtype=I32)), run.put(np.zeros(64, I32)), 10_000_000
    run.launch("count", 1, 1, [x, n])
    run.launch("turn", 1, 64, [x, y, 1])
    with pytest.raises(Stop), after(0.02, stop):
        run.driver.synchronize()
    run.driver.free(x)
    assert read(run, y, 64)[63] == n


def test_a_handler_that_uses_the_device_in_the_middle() -> None:
    run, n = Run(SOURCE), 20_000_000
    x, y = run.put(np.zeros(1, I32)), run.put(np.zeros(1, I32))
    run.launch("count", 1, 1, [x, n])
    seen: list[int] = []

    def handler(*_: Any) -> None:
        run.launch("add", 1, 1, [y, 2])
        seen.append(int(read(run, y, 1)[0]))

    with after(0.02, handler):
        assert read(run, x, 1)[0] == n
    assert seen == [2]


def test_asking_does_not_wait_for_a_kernel() -> None:
    run, n = Run(SOURCE), 60_000_000
    x, y = run.put(np.zeros(1, I32)), run.put(np.zeros(1, I32))
    run.launch("count", 1, 1, [x, n])
    thread = threading.Thread(target=run.driver.synchronize)
    thread.start()
    time.sleep(0.02)
    run.driver.free(y)
    run.launch("add", 1, 1, [x, 1])
    assert thread.is_alive()
    thread.join()
    assert read(run, x, 1)[0] == n + 1


def test_a_stack_that_is_full() -> None:
    run = Run(SOURCE)
    x = run.put(np.ones(1, I32))
    run.launch("deep", 1, 1, [x])
    with pytest.raises(KernelFault, match="deep has variables in a thread that do not fit on its"):
        read(run, x, 1)


# ------------------------------------------------------------------------------------ forks


def in_child(work: Callable[[], object]) -> Callable[[], None]:
    """Run it in a forked child at once; the result waits for the child and checks that it ended
    well."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)

    def wait() -> None:
        assert os.waitpid(pid, 0)[1] == 0

    return wait


def test_parent_and_child_at_once() -> None:
    """Each has stacks of its own: they shared them, and kernels wrote anywhere."""
    run, x = Run(SOURCE, 3), np.arange(64, dtype=I32)

    def work() -> None:
        for _ in range(20):
            assert (run("turn", 1, 64, x, x, 50)[1] == np.roll(x, -1) + 49).all()

    work()
    wait = in_child(work)
    work()
    wait()


def test_a_fork_while_a_kernel_runs_in_another_thread() -> None:
    """The child can go on with it where it was between two slices, and has an error else."""
    run, x = Run(SOURCE, 3), np.arange(64, dtype=I32)
    first, other = run.put(x), run.put(x)
    run.launch("turn", 1, 64, [first, other, 100_000])
    thread = threading.Thread(target=run.driver.synchronize)

    def work() -> None:
        try:
            assert (read(run, other, 64) == np.roll(x, -1) + 99_999).all()
        except KernelFault as error:
            assert "was running in another thread when this process was forked" in str(error)
        assert (run("turn", 1, 64, x, x, 5)[1] == np.roll(x, -1) + 4).all()

    thread.start()
    while thread.is_alive() and not run.driver.streams._begun:
        time.sleep(0.001)
    in_child(work)()
    thread.join()
    assert (read(run, other, 64) == np.roll(x, -1) + 99_999).all()


# ------------------------------------------------------------------------------------ programs


def many_sines(x: np.ndarray) -> Any:
    y = x
    for _ in range(20):
        y = np.sin(y) + x
    return y


def test_a_call_that_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a kernel, with the memory given back, and the next call right."""
    f = fusec.jit(many_sines, device=DEVICE)
    small, large = np.ones(10), np.ones(3_000_000)
    want = f(small)
    f(np.ones(11))
    gc.collect()
    DRIVER.synchronize()
    before, run, seconds = DRIVER.arena.used, launches.EmulatedLaunch.run, []

    def soon_interrupted(launch: launches.EmulatedLaunch) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        began = time.perf_counter()
        try:
            run(launch)
        finally:
            seconds.append(time.perf_counter() - began)

    monkeypatch.setattr(launches.EmulatedLaunch, "run", soon_interrupted)
    with pytest.raises(Stop), after(0, stop):
        f(large)
    monkeypatch.undo()
    assert len(seconds) == 1 and seconds[0] < 0.5, "all of it takes one"
    assert isinstance(DRIVER.streams._queues[0][0], EmulatedKernel), "it is where it was"
    np.testing.assert_array_equal(f(small), want)
    gc.collect()
    DRIVER.synchronize()
    assert DRIVER.arena.used == before


def _reduced_with_frames(error: KernelFault) -> tuple[Any, ...]:
    return _with_frames, (error.args, error.__traceback__)


def _with_frames(args: tuple[Any, ...], frames: Any) -> KernelFault:
    return KernelFault(*args).with_traceback(frames)


@pytest.mark.parametrize("copies_have_frames", [False, True])
def test_a_fault_leaves_no_memory_to_its_traceback(
    copies_have_frames: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies have frames where tblib is in the process, which ``distributed`` uses."""
    if copies_have_frames:
        monkeypatch.setitem(copyreg.dispatch_table, KernelFault, _reduced_with_frames)
    f = fusec.jit(lambda x: np.cos(x) + 1, device=DEVICE)
    x = np.ones(1000)
    f(x)
    gc.collect()
    DRIVER.synchronize()
    before = DRIVER.arena.used

    def run(*_: Any) -> None:
        raise KernelFault("kernel nest_0_0 has a fault")

    monkeypatch.setattr(launches.EmulatedLaunch, "run", run)
    errors = []
    for _ in range(3):
        with pytest.raises(KernelFault) as caught:
            f(x)
        errors.append(caught.value)
    assert len(set(map(id, errors))) == 3
    del caught, errors
    gc.collect()
    DRIVER.synchronize()
    assert DRIVER.arena.used == before


def test_interrupted_calls_beside_others() -> None:
    gc.collect()
    DRIVER.synchronize()
    before = DRIVER.arena.used
    stops, others = campaign(1.0, seed=1)
    assert others.calls > 0 and not others.wrong, others.wrong
    gc.collect()
    DRIVER.synchronize()
    assert stops > 0 and DRIVER.arena.used == before
