"""A forked child works, whatever the threads that it lost were doing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fusec
from fusec.core import locks

ROOT = Path(__file__).parents[2]

HEAD = """
import os, random, signal, sys, threading, time
import numpy as np
import numpy.testing
import fusec
from fusec.core import locks

SECONDS = 20
x = np.linspace(0.0, 1.0, 1000)

def program(k):
    def f(x):
        y = x
        for i in range(12):
            y = np.sin(y) * 0.5 + i * 0.1 + k * 0.001
        return y.sum()
    return f

shared = fusec.jit(program(0))

def check(k, n):
    np.testing.assert_allclose(fusec.jit(program(k))(x), program(k)(x))
    y = np.ones(n)
    np.testing.assert_allclose(shared(y), program(0)(y))

def forked(work):
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # a deadlock ends the child by SIGALRM
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]
"""

UNDER_EACH = HEAD + """
def loop(n):  # a native loop's lock, too
    total = 0.0
    while total < n:
        total = total + 1.5
    return total

fusec.jit(loop)(np.float64(3.0))
check(1, 1001)
shared(np.ones(3_000_000))  # starts the workers
found = locks.every_lock()
assert len(found) >= 8, found
for number, lock in enumerate(found):
    held, release = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            release.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    timer = threading.Timer(0.2, release.set)  # a fork waits for some of them
    timer.start()
    status = forked(lambda: check(100 + number, 2000 + number))
    release.set(), timer.cancel(), thread.join()
    assert status == 0, (number, status)
print("forked under", len(found))
"""

WHILE_TRACING = HEAD + """
stop = False

def work():
    k = 1000
    while not stop:
        k += 1
        shared.clear()
        check(k, k)

thread = threading.Thread(target=work)
{warm}
thread.start()
statuses = []
for number in range({times}):
    time.sleep(random.Random({seed} + number).random() * {pause})
    statuses.append(forked(lambda: check(number, 3000 + number)))
stop = True
thread.join()
assert not any(statuses), statuses
"""


def run(program: str, folder: Path) -> str:
    file = folder / "program.py"  # a loop's source is read
    file.write_text(program)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "FUSEC_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_child_forked_under_each_lock_works(tmp_path: Path) -> None:
    assert run(UNDER_EACH, tmp_path).startswith("forked under")


def test_children_forked_while_another_thread_traces_work(tmp_path: Path) -> None:
    run(WHILE_TRACING.format(warm="check(1, 1001)", times=12, seed=1, pause=0.03), tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_a_child_forked_while_another_thread_imports_the_compiler_works(
    tmp_path: Path, seed: int,
) -> None:
    run(WHILE_TRACING.format(warm="", times=2, seed=seed, pause=0.2), tmp_path)


SLOW_IMPORT = HEAD + """
import importlib.machinery

class Slow:
    def find_spec(name, path, target=None):
        if name != {module!r}:
            return None
        looking.set()
        time.sleep(0.3)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (time.sleep(0.3), run(module))
        return spec

assert {module!r} not in sys.modules
looking = threading.Event()
sys.meta_path.insert(0, Slow)
thread = threading.Thread(target=__import__, args=({module!r},))
thread.start()
looking.wait()
assert forked(lambda: check(1, 1001)) == 0
thread.join()
"""


@pytest.mark.parametrize("module", ["resource", "fusec.dispatch.dispatcher"])
def test_a_fork_waits_for_an_import_that_still_looks_for_its_file(
    tmp_path: Path, module: str,
) -> None:
    run(SLOW_IMPORT.format(module=module), tmp_path)


def test_a_plan_that_a_lost_thread_was_inside_of_is_free_in_the_child(
    tmp_path: Path,
) -> None:
    run(HEAD + """
from fusec.runtime.launching import launch
from fusec.runtime.launching.outcomes import BUSY
from fusec.runtime.native import records
shared(x)
at = records.PLAN.index("busy")
for words in launch._tables.values():
    words[at] = 1
fast = shared._fast.positional[0][0]
assert fast(x) is BUSY

def work():
    assert fast(x) == shared(x)

assert forked(work) == 0 and fast(x) is BUSY
""", tmp_path)


def test_a_thread_that_forks_keeps_the_locks_it_holds() -> None:
    lock = locks.Lock()
    with lock:
        child = os.fork()
        if child == 0:
            try:
                with lock:
                    pass
                lock.release()
                lock.try_acquire()
            except BaseException:
                os._exit(1)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.try_acquire()
    lock.release()


def test_every_lock_is_made_in_one_place() -> None:
    makes = re.compile(r"_thread\.(RLock|allocate_lock)\b|threading\.(Lock|RLock|Condition|Event"
                       r"|Semaphore|BoundedSemaphore|Barrier)\(|@functools\.cached_property"
                       r"|import cached_property|import (R?Lock)\b")
    folders = ("fusec", "passes", "codegen", "runtime")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")
             if "bench" not in path.parts and makes.search(path.read_text())]
    assert found == [ROOT / "fusec" / "core" / "locks.py"]


def test_an_import_by_the_forking_thread_itself_is_not_waited_for() -> None:
    code = "import os; child = os.fork(); os._exit(0) if child == 0 else os.waitpid(child, 0)"
    spec = fusec.__spec__
    assert spec is not None
    spec._initializing = True  # type: ignore[attr-defined]
    try:
        exec(code)
    finally:
        spec._initializing = False  # type: ignore[attr-defined]
