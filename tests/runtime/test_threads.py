"""The thread pool: every task once, on any number of threads, nested, forked and at exit."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from fusec.codegen.machine_code.llvm import NativeCode, compile_ir
from fusec.runtime.launching import threads

KERNELS = """
declare void @fusec_parallel_for(ptr, ptr, i64, i64)

; counts[i] += 1 for each task i; args[0] is the address of counts
define void @count(ptr %args, i64 %begin, i64 %end) {
entry:
  %address = load i64, ptr %args
  %counts = inttoptr i64 %address to ptr
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %place = getelementptr i64, ptr %counts, i64 %i
  %old = load i64, ptr %place
  %new = add i64 %old, 1
  store i64 %new, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

; each of 4 outer tasks runs `count` over 64 tasks of its own part: a nested fork-join
define void @nested(ptr %args, i64 %begin, i64 %end) {
entry:
  %address = load i64, ptr %args
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %part = alloca i64
  %offset = mul i64 %i, 512
  %mine = add i64 %address, %offset
  store i64 %mine, ptr %part
  call void @fusec_parallel_for(ptr @count, ptr %part, i64 64, i64 1)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

; two tasks that both must be running at once to finish: proof that a second thread takes part
define void @meet(ptr %args, i64 %begin, i64 %end) {
entry:
  %arrived = atomicrmw add ptr %args, i64 1 seq_cst
  br label %wait
wait:
  %count = load atomic i64, ptr %args seq_cst, align 8
  %odd = and i64 %count, 1
  %alone = icmp ne i64 %odd, 0
  br i1 %alone, label %wait, label %done
done:
  ret void
}
"""


@functools.cache
def kernels() -> NativeCode:
    threads.pool_address()
    return compile_ir(KERNELS)


@functools.cache
def kernels_address(symbol: str) -> int:
    return kernels().address(symbol)


def run(symbol: str, counts: np.ndarray, ntasks: int, grain: int) -> None:
    args = (ctypes.c_int64 * 1)(counts.ctypes.data)
    threads.parallel_for(kernels_address(symbol), ctypes.addressof(args), ntasks, grain)


@pytest.fixture(autouse=True)
def restore_thread_count():
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize(("ntasks", "grain"), [(0, 1), (1, 1), (7, 3), (1000, 1), (1000, 37),
                                              (5, 100), (64, 0)])
def test_every_task_runs_once(count: int, ntasks: int, grain: int) -> None:
    threads.set_num_threads(count)
    counts = np.zeros(ntasks + 1, np.int64)
    if ntasks:
        run("count", counts, ntasks, grain)
    assert counts[:ntasks].tolist() == [1] * ntasks
    assert counts[ntasks] == 0


def test_a_second_thread_takes_part() -> None:
    threads.set_num_threads(2)
    for pause in (0, 0, 0.02, 0.02):
        time.sleep(pause)
        arrived = (ctypes.c_int64 * 1)()
        threads.parallel_for(kernels_address("meet"), ctypes.addressof(arrived), 2, 1)
        assert arrived[0] == 2


def test_nested_calls_run_serially() -> None:
    threads.set_num_threads(3)
    counts = np.zeros(256, np.int64)
    for _ in range(50):
        run("nested", counts, 4, 1)
    assert counts.tolist() == [50] * 256


def test_concurrent_callers() -> None:
    threads.set_num_threads(2)
    results = [np.zeros(300, np.int64) for _ in range(4)]

    def work(counts: np.ndarray) -> None:
        for _ in range(300):
            run("count", counts, 300, 11)

    callers = [threading.Thread(target=work, args=(counts,)) for counts in results]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert all(counts.tolist() == [300] * 300 for counts in results)


def test_changing_the_number_of_threads() -> None:
    counts = np.zeros(128, np.int64)
    for count in (4, 1, 2, 5, 1, 4):
        threads.set_num_threads(count)
        assert threads.get_num_threads() == count
        run("count", counts, 128, 1)
    assert counts.tolist() == [6] * 128


@pytest.mark.parametrize("bad", [0, -1, 10**6, 2.5, "4"])
def test_bad_thread_counts_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="give an integer from 1 to"):
        threads.set_num_threads(bad)  # type: ignore[arg-type]


def _child_status(pid: int, seconds: float = 30) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the forked child hangs")


def _fork_and_count() -> int:
    """Fork a child that counts 64 tasks and exits with 0 when each ran once; returns its pid."""
    address = kernels_address("count")
    pid = os.fork()
    if pid == 0:
        counts = np.zeros(64, np.int64)
        args = (ctypes.c_int64 * 1)(counts.ctypes.data)
        threads.parallel_for(address, ctypes.addressof(args), 64, 1)
        os._exit(0 if counts.tolist() == [1] * 64 else 3)
    return pid


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("busy", [False, True])
def test_forked_child_has_a_pool_of_its_own(busy: bool) -> None:
    threads.set_num_threads(2)
    run("count", np.zeros(64, np.int64), 64, 1)
    stop = threading.Event()

    def keep_busy() -> None:
        counts = np.zeros(64, np.int64)
        while not stop.is_set():
            run("count", counts, 64, 1)

    background = threading.Thread(target=keep_busy) if busy else None
    if background:
        background.start()
    try:
        statuses = [_child_status(_fork_and_count()) for _ in range(5)]
    finally:
        stop.set()
        if background:
            background.join(30)
    assert statuses == [0] * 5
    counts = np.zeros(64, np.int64)
    run("count", counts, 64, 1)
    assert counts.tolist() == [1] * 64


EXIT = """
import sys, threading
sys.path.insert(0, {here!r})
import numpy as np
import test_threads as t
t.threads.set_num_threads(3)
t.run("count", np.zeros(64, np.int64), 64, 1)
if {daemon}:
    counts = np.zeros(64, np.int64)
    def forever():
        while True:
            t.run("count", counts, 64, 1)
    threading.Thread(target=forever, daemon=True).start()
print("done")
"""


@pytest.mark.parametrize("daemon", [False, True])
def test_interpreter_exit_is_clean(daemon: bool) -> None:
    script = EXIT.format(here=str(Path(__file__).parent), daemon=daemon)
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_symbols_are_what_they_say() -> None:
    symbols = threads.symbol_addresses()
    assert symbols["fusec_parallel_for"] == threads.pool_address()
    threads.set_num_threads(2)
    threads.ensure_workers()
    workers = ctypes.CFUNCTYPE(ctypes.c_int64)(symbols["fusec_pool_workers"])
    assert workers() >= 1


FORBIDDEN = """
import ctypes, os, threading
from fusec.codegen.machine_code import llvm
from fusec.runtime.native import cpus, libc_addresses

llvm.add_symbols(libc_addresses(*cpus.AFFINITY_SYMBOLS))
code = llvm.compile_ir(cpus.affinity_text() + '''
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i32 @avoid(i32 %avoided, i32 %cpu) {
  %now = call i32 @avoid_cpu(i32 %avoided, i32 %cpu)
  ret i32 %now
}''')
avoid = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)(code.address("avoid"))
process = os.getpid()
first, *rest = sorted(os.sched_getaffinity(process))
last = (rest or [first])[-1]

def worker():
    banned = avoid(-1, first)
    assert os.sched_getaffinity(0) == set(rest or [first]) and banned in (first, -1)
    assert avoid(banned, last) == (last if rest else -1)  # a ban moves with the caller
    assert first in os.sched_getaffinity(0)
    banned = avoid(last, first) if rest else -1
    os.sched_setaffinity(process, {last})  # the process may not use the first any more
    avoid(banned, last)
    assert os.sched_getaffinity(0) <= {last}, os.sched_getaffinity(0)

def run():
    try:
        worker()
    except BaseException as error:
        failed.append(error)

failed = []
thread = threading.Thread(target=run)
thread.start(), thread.join()
if failed:
    raise failed[0]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there do threads choose their CPUs")
def test_a_worker_stays_off_cpus_that_the_process_was_forbidden() -> None:
    done = subprocess.run([sys.executable, "-c", FORBIDDEN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
