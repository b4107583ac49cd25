"""The threads of devices: order, cores and workers of their own, interrupts, forks, exit."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_threads import _child_status, kernels_address, run

import fusec
from fusec import config
from fusec.core import machine
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices import device_thread, registry
from fusec.runtime.devices.device import Device
from fusec.runtime.launching import threads

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
CPUS = machine.usable_cpus()


class Stop(BaseException):
    """The exception that tests interrupt with."""


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device(DeviceName("localhost", 0, "CPU", 7), CPUS[:1], threads=1)
    yield made
    made.close()


def done(device: Device, work: Callable[[], Any], seconds: float = 30) -> Any:
    """The work's result on the device's thread."""
    result: list[Any] = []
    ended = threading.Event()

    def keep() -> None:
        try:
            result.append(work())
        except Exception as error:
            result.append(error)
        ended.set()

    device.submit(keep)
    assert ended.wait(seconds)
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


def test_work_runs_in_order_on_one_thread(device: Device) -> None:
    seen: list[tuple[int, int]] = []
    for i in range(200):
        device.submit(lambda i=i: seen.append((i, threading.get_ident())))
    done(device, lambda: None)
    assert [i for i, _ in seen] == [*range(200)]
    assert len({ident for _, ident in seen} - {threading.get_ident()}) == 1


def test_several_devices_share_the_cores_among_them() -> None:
    with config.override(logical_cpu_devices=2):
        two = registry.matching(DeviceName(type="CPU"))
        assert [d.name.short for d in two] == ["CPU:0", "CPU:1"]
        assert sorted({*two[0].cores, *two[1].cores}) == sorted(CPUS)
        if len(CPUS) > 1:
            assert not {*two[0].cores} & {*two[1].cores}
        if hasattr(os, "sched_getaffinity"):
            assert [done(d, lambda: os.sched_getaffinity(0)) for d in two] == [
                {*d.cores} for d in two]
    assert os.sched_getaffinity(0) == {*CPUS}


def test_more_devices_than_cores_share_them() -> None:
    count = len(CPUS) + 1
    with config.override(logical_cpu_devices=count):
        each = registry.matching(DeviceName(type="CPU"))
        assert [len(d.cores) for d in each] == [1] * count
        assert each[0].cores == each[-1].cores
        assert [d.threads for d in each] == [1] * count


def test_one_device_is_the_process_as_it_is() -> None:
    with config.override(logical_cpu_devices=1):
        (only,) = registry.matching(DeviceName(type="CPU"))
        assert only.threads is None and only.cores == CPUS
        if hasattr(os, "sched_getaffinity"):
            assert done(only, lambda: os.sched_getaffinity(0)) == {*CPUS}


@pytest.mark.parametrize(("cores", "count", "threads_wanted", "shares"), [
    (8, 2, 8, [4, 4]), (8, 2, 4, [2, 2]), (8, 3, 8, [2, 3, 3]), (8, 2, 1, [1, 1]),
    (2, 2, 2, [1, 1]), (2, 2, 8, [1, 1]), (2, 4, 2, [1, 1, 1, 1]), (5, 2, 5, [2, 3])])
def test_threads_are_divided(
    monkeypatch: pytest.MonkeyPatch, cores: int, count: int, threads_wanted: int,
    shares: list[int],
) -> None:
    """Nothing is started here, so that the cores need not be there."""
    monkeypatch.setattr(machine, "usable_cpus", lambda: tuple(range(cores)))
    with config.override(num_threads=threads_wanted, logical_cpu_devices=count):
        found = registry._logical_cpus()
        parts = [set(d.cores) for d in found] if count > 1 else []
        assert [d.threads for d in found] == shares
        assert sum(map(len, parts)) == max(cores, count)


def test_devices_follow_the_number_of_threads() -> None:
    with config.override(logical_cpu_devices=2, num_threads=1):
        before = registry.matching(DeviceName(type="CPU"))
        assert [d.threads for d in before] == [1, 1]
        config.num_threads = 2 * len(CPUS)
        assert registry.matching(DeviceName(type="CPU")) == before
        assert [d.threads for d in before] == [len(d.cores) for d in before]


def test_siblings_lie_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """CPUs 0 and 2, 1 and 3 are threads of one core each, as Linux often numbers them."""
    for cpu, core in enumerate([0, 1, 0, 1]):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "core_id").write_text(f"{core}\n")
        (topology / "physical_package_id").write_text("0\n")
    monkeypatch.setattr(machine, "_CPUS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert machine.shared_out(machine.usable_cpus(), 2) == [(0, 2), (1, 3)]


# ---- workers ---------------------------------------------------------------------------------

@pytest.fixture
def pair() -> Iterator[list[Device]]:
    """Two devices whose kernels have two threads each, wherever these run."""
    made = [Device(DeviceName("localhost", 0, "CPU", i), (), threads=2) for i in (8, 9)]
    yield made
    for each in made:
        each.close()


def meet() -> int:
    """Needs two threads, or never ends."""
    arrived = (ctypes.c_int64 * 1)()
    threads.parallel_for(kernels_address("meet"), ctypes.addressof(arrived), 2, 1)
    return arrived[0]


def test_each_device_has_workers_of_its_own(pair: list[Device]) -> None:
    """Were there one pool for all, a concurrent caller would do all of its work itself."""
    before = len(threads._workers.threads)
    kernels_address("meet")
    ended: list[int] = []
    for _ in range(20):
        for device in pair:
            device.submit(lambda: ended.append(meet()))
    for device in pair:
        done(device, lambda: None)
    assert ended == [2] * 40
    assert [len(d._pool.threads) for d in pair if d._pool is not None] == [1, 1]
    assert len(threads._workers.threads) == before


def test_a_nested_call_stays_in_the_pool(pair: list[Device]) -> None:
    counts = np.zeros(256, np.int64)
    kernels_address("nested")
    for _ in range(30):
        done(pair[0], lambda: run("nested", counts, 4, 1))
    assert counts.tolist() == [30] * 256


def test_with_one_core_there_are_no_workers(device: Device) -> None:
    counts = np.zeros(64, np.int64)
    kernels_address("count")
    done(device, lambda: run("count", counts, 64, 1))
    assert device._pool is not None and not device._pool.threads
    assert counts.tolist() == [1] * 64


def test_compiled_functions_use_the_devices_workers(pair: list[Device]) -> None:
    @fusec.jit
    def f(x: np.ndarray) -> np.ndarray:
        return np.sin(x) * np.exp(-x) + np.cbrt(x)

    x = np.linspace(0.0, 1.0, 300_000)
    want = f(x)
    for device in pair:
        np.testing.assert_array_equal(done(device, lambda: f(x)), want)
        assert device._pool is not None and len(device._pool.threads) == 1


def test_workers_keep_to_the_cores() -> None:
    device = Device(DeviceName("localhost", 0, "CPU", 8), CPUS[-1:], threads=2)
    kernels_address("meet")
    assert done(device, meet) == 2
    assert device._pool is not None
    (worker,) = device._pool.threads
    assert worker.native_id is not None
    if hasattr(os, "sched_getaffinity"):
        assert os.sched_getaffinity(worker.native_id) == {CPUS[-1]}
    device.close()
    worker.join(10)
    assert not worker.is_alive()


def test_blocks_of_closed_pools_are_used_again() -> None:
    kernels_address("count")
    counts = np.zeros(64, np.int64)

    def once() -> int:
        device = Device(DeviceName("localhost", 0, "CPU", 8), (), threads=2)
        done(device, lambda: run("count", counts, 64, 1))
        assert device._pool is not None
        address, thread = device._pool.address, device._thread._thread
        device.close()
        assert thread is not None
        thread.join(10)
        return address

    assert len({once() for _ in range(5)}) == 1
    assert counts.tolist() == [5] * 64


# ---- the end of a thread ---------------------------------------------------------------------

def test_what_was_submitted_before_the_end_still_runs(device: Device) -> None:
    seen: list[int] = []
    gate = threading.Event()
    device.submit(lambda: gate.wait(30))
    for i in range(50):
        device.submit(lambda i=i: seen.append(i))
    device.close()
    device.submit(lambda: seen.append(50))
    gate.set()
    done(device, lambda: None)
    assert seen == [*range(51)]


def test_a_change_of_the_number_ends_the_threads() -> None:
    with config.override(logical_cpu_devices=2):
        old = registry.matching(DeviceName(type="CPU"))
        names = [done(d, lambda: threading.current_thread()) for d in old]
        config.logical_cpu_devices = 3
        for thread in names:
            thread.join(10)
            assert not thread.is_alive()
        assert len(registry.matching(DeviceName(type="CPU"))) == 3
        assert done(old[1], lambda: 5) == 5  # a plan that is still kept


def test_who_submits_works_where_no_thread_can_be_started(
    device: Device, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    seen: list[Any] = []

    def first() -> None:
        device.submit(lambda: seen.append("second"))
        seen.append(threading.current_thread())

    monkeypatch.setattr(threading.Thread, "start", start)
    device.submit(first)
    assert seen == [threading.current_thread(), "second"]
    assert "no thread could be started for CPU:7" in capfd.readouterr().err
    monkeypatch.undo()
    assert done(device, threading.current_thread) is not threading.current_thread()


def test_work_that_raises_is_reported_and_the_next_runs(
    device: Device, monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    device.submit(lambda: 1 / 0)
    assert done(device, lambda: 5) == 5
    assert [r.exc_type for r in reported] == [ZeroDivisionError]


def test_threads_end_with_their_device() -> None:
    device = Device(DeviceName("localhost", 0, "CPU", 8), (), threads=1)
    thread, kept = done(device, threading.current_thread), weakref.ref(device)
    device.close()
    thread.join(10)
    del device
    gc.collect()
    assert kept() is None and not thread.is_alive()


# ---- interrupts ------------------------------------------------------------------------------

def interrupted(device: Device, work: Callable[[], Any], after: float = 0.05) -> float:
    """Seconds from the interrupt to the end of the work, which must be by `Stop`."""
    started, ended, stopped = threading.Event(), threading.Event(), []

    def watched() -> None:
        started.set()
        try:
            work()
        except Stop:
            stopped.append(True)
        ended.set()

    device.submit(watched)
    assert started.wait(30)
    time.sleep(after)
    begun = time.perf_counter()
    assert device.interrupt(Stop, watched)
    assert ended.wait(30) and stopped
    return time.perf_counter() - begun


def spin() -> None:
    while True:
        pass


def test_python_is_interrupted(device: Device) -> None:
    assert interrupted(device, spin) < 1.0
    assert done(device, lambda: 5) == 5


def test_native_loops_are_interrupted_and_let_others_run(device: Device) -> None:
    @fusec.jit
    def f(n: int) -> float:
        s = 0.0
        for i in range(n):
            s = s * 0.5 + i
        return s

    f(2)
    want = f(3)
    seconds = interrupted(device, lambda: f(1 << 50))
    assert seconds < 1.0
    assert done(device, lambda: f(3)) == want


def test_an_interrupt_that_a_callback_swallows_comes_again(device: Device) -> None:
    class Watched:
        pass

    unraisable: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append

    def swallows() -> None:
        watched = Watched()
        kept = weakref.ref(watched, lambda _: spin())
        del watched
        while kept() is None:
            pass

    try:
        assert interrupted(device, swallows) < 3.0
    finally:
        sys.unraisablehook = before
    assert len(unraisable) == 1


def test_no_interrupt_hits_what_comes_next(device: Device) -> None:
    """Interrupts come at all moments of short pieces of work; each may end that piece alone."""
    hit: list[int] = []
    reported: list[Any] = []
    before, threading.excepthook = threading.excepthook, reported.append
    try:
        for i in range(400):
            first_began, ended = threading.Event(), threading.Event()

            def first(began: threading.Event = first_began, i: int = i) -> None:
                began.set()
                for _ in range(i % 40):
                    pass

            def second(ended: threading.Event = ended, i: int = i) -> None:
                try:
                    for _ in range(2000):
                        pass
                except Stop:
                    hit.append(i)
                ended.set()

            device.submit(first)
            device.submit(second)
            first_began.wait(30)
            device.interrupt(Stop, first)
            assert ended.wait(30)
    finally:
        threading.excepthook = before
    assert not hit and not reported


def test_what_does_not_run_is_not_interrupted(device: Device) -> None:
    assert not device.interrupt(Stop)
    started, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        go_on.wait(30)

    device.submit(wait)
    assert started.wait(30)
    assert not device.interrupt(Stop, lambda: None)
    go_on.set()
    assert done(device, lambda: 5) == 5


# ---- fork and exit ---------------------------------------------------------------------------

def test_a_forked_child_has_a_thread_of_its_own(device: Device) -> None:
    gate = threading.Event()
    seen: list[int] = []
    device.submit(lambda: gate.wait(30))
    device.submit(lambda: seen.append(1))
    pid = os.fork()
    if pid == 0:  # the gate stays shut here: what waits behind it is the parent's
        good = done(device, lambda: 5) == 5 and not seen
        os._exit(0 if good else 3)
    try:
        assert _child_status(pid) == 0
    finally:
        gate.set()
    done(device, lambda: None)
    assert seen == [1]


def test_children_have_pools_of_their_own(pair: list[Device]) -> None:
    kernels_address("meet")
    assert done(pair[0], meet) == 2
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if [done(d, meet) for d in pair] == [2, 2] else 3)
        assert _child_status(pid) == 0
    assert done(pair[1], meet) == 2


def test_work_may_fork(pair: list[Device]) -> None:
    kernels_address("meet")

    def forked() -> int:
        pid = os.fork()
        if pid == 0:  # this thread is the child's only one, with the device's pool
            try:
                good = meet() == 2 and done(pair[0], meet) == 2 and done(pair[1], meet) == 2
                os._exit(0 if good else 3)
            except BaseException:
                os._exit(4)
        return pid

    assert _child_status(done(pair[0], forked)) == 0
    assert done(pair[0], meet) == 2


EXIT = """
import sys, threading, time
import fusec
from fusec.runtime.devices import registry
fusec.config.logical_cpu_devices = 2
for device in registry.devices()[:2]:
    device.submit(lambda: {work})
    for _ in range(1000):
        device.submit(lambda: time.sleep(1))
time.sleep(0.1)
print("done")
"""


@pytest.mark.parametrize("work", ["None", "time.sleep(100)", "[0 for _ in iter(int, 1)]"])
def test_interpreter_exit_does_not_wait_for_devices(work: str) -> None:
    start = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", EXIT.format(work=work)], capture_output=True,
                            text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
    assert time.perf_counter() - start < 15


def test_every_thread_is_known_to_fork_and_exit(device: Device) -> None:
    assert device._thread in device_thread._all


# ---- other threads ---------------------------------------------------------------------------

@fusec.jit
def looped(n: int) -> float:
    s = 0.0
    for i in range(n):
        s = s * 0.5 + i
    return s


@fusec.jit
def kernel(x: np.ndarray) -> np.ndarray:
    return np.sin(x) * np.cbrt(x) + np.exp(-x) * np.log1p(x)


@fusec.jit
def library(x: np.ndarray) -> np.ndarray:
    return np.sort(x * 1.0)


@pytest.mark.parametrize("work", [
    lambda: looped(20_000_000), lambda: kernel(np.linspace(0.0, 1.0, 4_000_000)),
    lambda: library(np.random.default_rng(0).random(1_000_000))])
def test_other_threads_run_beside_a_devices_work(
    device: Device, work: Callable[[], Any],
) -> None:
    """A loop of 29 ms let another thread run once, when it kept the interpreter's lock."""
    looped(2), looped(3)
    work()
    ended, turns = threading.Event(), 0

    def watched() -> None:
        work()
        ended.set()

    device.submit(watched)
    while not ended.is_set():
        turns += 1
        time.sleep(0.0005)
    assert turns >= 5
