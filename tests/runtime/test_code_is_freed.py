"""Machine code lives as long as a plan uses it: memory and memory maps over many traces."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.codegen.machine_code.code_cache import RECENT, CodeCache
from fusec.runtime import memory

pytestmark = pytest.mark.alone  # memory of a process

HEAD = """
import gc, os, sys
import numpy as np
import fusec

x = np.linspace(0.0, 1.0, 100)

def program(k):  # each k is other machine code
    bits = [(k >> i) & 1 for i in range(10)]
    def f(x):
        for b in bits:
            x = np.sqrt(x * x + 1.0) if b else abs(x - 0.5)
        return x.sum() + x
    return f

def loop(k):
    bits = [(k >> i) & 1 for i in range(8)]
    def f(x, n):
        s = 0.0
        for i in range(n):
            for b in bits:
                s = s * 0.5 + x[i] if b else abs(s - 0.5)
        return s
    return f

def check(k):
    np.testing.assert_allclose(fusec.jit(program(k))(x), program(k)(x))

def check_loop(k):
    f = fusec.jit(loop(k))
    f(x, 2), f(x, 3)
    np.testing.assert_allclose(f(x, 50), loop(k)(x, 50))

def usage():
    gc.collect()
    with open("/proc/self/statm") as pages, open("/proc/self/maps") as maps:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, len(list(maps))

def grown(work, numbers, warm):
    for k in range(warm):
        work(k)
    rss, maps = usage()
    for k in range(warm, numbers):
        work(k)
    now = usage()
    print(now[0] - rss, now[1] - maps)
"""


def grown(program: str, folder: Path) -> tuple[float, int]:
    """(MB of memory, memory maps) that a program in a new process adds."""
    file = folder / "program.py"
    file.write_text(HEAD + program)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rss, maps = done.stdout.split()
    return float(rss), int(maps)


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@linux
def test_functions_made_and_deleted_leave_no_code(tmp_path: Path) -> None:
    rss, maps = grown("grown(check, 160, 50)", tmp_path)
    assert rss < 12 and maps < 60


@linux
def test_loops_made_and_deleted_leave_no_code(tmp_path: Path) -> None:
    rss, maps = grown("grown(check_loop, 100, 40)", tmp_path)
    assert rss < 12 and maps < 60


@linux
def test_traces_of_one_function_are_given_back(tmp_path: Path) -> None:
    rss, maps = grown("""
@fusec.jit
def f(x, k):
    for i in range(10):
        x = np.sqrt(x * x + 1.0) if (k >> i) & 1 else abs(x - 0.5)
    return x.sum() + x

f._dispatching().compiler.binder.pinned = frozenset({"k"})  # each value has a trace

def work(k):
    f(x, k)
    if f.trace_count >= 20:
        f.clear()

grown(work, 160, 60)
""", tmp_path)
    assert rss < 20 and maps < 100


@linux
def test_clear_caches_frees_what_live_functions_hold(tmp_path: Path) -> None:
    program = """
held = []

def work(k):
    f = fusec.jit(program(k))
    f(x)
    held.append(f)

for k in range(40):
    work(k)
fusec.clear_caches()
rss, maps = usage()
for k in range(40, 150):
    work(k)
full = usage()
fusec.clear_caches()
now = usage()
assert full[1] - maps > 200, (full, maps)
assert all(f.trace_count == 0 for f in held)
print(now[0] - rss, now[1] - maps)
np.testing.assert_allclose(held[7](x), program(7)(x))
"""
    grown(program, tmp_path)  # what LLVM leaves in malloc's pools is not what is looked for
    rss, maps = grown(program, tmp_path)
    assert rss < 25 and maps < 20


def test_clear_caches_forgets_traces_and_memory() -> None:
    constant = np.ones(1_000_000)
    held = weakref.ref(constant)

    @fusec.jit
    def f(x: np.ndarray) -> np.ndarray:
        return x * 2.0

    class Model:
        @fusec.jit
        def g(self, x: np.ndarray) -> np.ndarray:
            return x + 1.0

    model = Model()
    y = constant[:]
    del constant
    f(y), model.g(y)
    assert f.trace_count == 1 and model.g.trace_count == 1
    assert memory.memory_stats().retained_bytes > 0
    del y
    fusec.clear_caches()
    assert f.trace_count == 0 and model.g.trace_count == 0 and held() is None
    assert memory.memory_stats().retained_bytes == 0
    np.testing.assert_array_equal(f(np.ones(3)), [2.0] * 3)
    np.testing.assert_array_equal(model.g(np.ones(3)), [2.0] * 3)


def test_a_plan_that_is_still_held_keeps_its_code() -> None:
    function = fusec.jit(lambda x: np.sqrt(x * 3.0) + 7.0)
    x = np.linspace(0.0, 1.0, 1000)
    expected = function(x)
    fast = function._fast.positional[0][0]
    fusec.clear_caches()
    for k in range(20):  # other code, which would take the place of freed code
        fusec.jit(_other(k))(x)
    np.testing.assert_array_equal(fast(x), expected)
    held = fusec.jit(lambda x, n: _summed(x, n))
    held(x, 2), held(x, 3)
    total = held(x, 10)
    fast = held._fast.positional[0][0]
    fusec.clear_caches()
    assert fast(x, 10) == total


def _other(k: int) -> Callable[[np.ndarray], np.ndarray]:
    def f(x: np.ndarray) -> np.ndarray:
        for i in range(6):
            x = np.sqrt(x + 1.0) if (k >> i) & 1 else abs(x - 0.5)
        return x
    return f


def _summed(x: np.ndarray, n: int) -> float:
    s = 0.0
    for i in range(n):
        s = s * 0.5 + x[i]
    return s


def test_code_is_not_freed_under_a_thread_that_runs_it() -> None:
    @fusec.jit
    def f(x: np.ndarray) -> np.ndarray:
        y = np.sin(x) * 2.0
        for _ in range(3):
            y = np.cos(y) + x
        return y

    @fusec.jit
    def g(x: np.ndarray, n: int) -> float:
        return _summed(x, n)

    x = np.linspace(0.0, 1.0, 60_000)
    first, second = f(x), g(x, 50_000)
    stop, wrong = threading.Event(), []

    def work() -> None:
        while not stop.is_set():
            if not np.array_equal(f(x), first) or g(x, 50_000) != second:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            fusec.clear_caches()
            gc.collect()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_recent_code_outlives_its_plan() -> None:
    """A function that is jitted at each use is not compiled each time."""
    x = np.ones(10)
    compiled = []
    for _ in range(3):
        function = fusec.jit(lambda x: (x + 0.25) * np.sqrt(x + 3.0))
        function(x)
        compiled.append(function.traces[0].build.stats.compiled)
        del function
        gc.collect()
    assert compiled[1:] == [0, 0]


def test_a_cache_keeps_what_is_alive_and_the_last() -> None:
    class Thing:
        pass

    cache: CodeCache[int, Thing] = CodeCache()
    held = cache.add(0, Thing())
    for number in range(1, 2 * RECENT):
        cache.add(number, Thing())
    alive = [number for number in range(2 * RECENT) if cache._alive.get(number) is not None]
    assert alive == [0, *range(RECENT, 2 * RECENT)] and cache.get(0) is held
    cache.clear()
    assert cache.get(0) is None
