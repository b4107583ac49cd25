"""Every form of loop lets other threads run, and Ctrl-C end it, within a fraction of a second."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.runtime.native import interrupts

pytestmark = pytest.mark.alone  # how soon Ctrl-C ends a call

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import fusec

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
OUT = np.zeros(200_000)

{program}

f = fusec.jit(program)
x = np.linspace(0.0, 1.0, 200_000)
f(x, 2), f(x, 3)
f.concrete(x, 1 << 40)  # compiled before the clock runs
print(f.traces[-1].control[0].is_native)

gaps, sent = [], []

def watch():  # it runs where the loop lets it
    start = last = time.perf_counter()
    while last - start < 1.0:
        time.sleep(0.001)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

thread = threading.Thread(target=watch)
try:
    thread.start()
    f(x, 1 << 40)
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0], max(gaps))
thread.join()
np.testing.assert_allclose(f(x, 3), program(x, 3))  # the function goes on working
"""
FORMS = {
    "a while loop of numbers": """
def program(x, n):
    i = s = 0
    while i < n:
        s += i % 7 * i
        i += 1
    return s % 1000
""",
    "a counted loop of numbers": """
def program(x, n):
    s = 0.0
    for i in range(n):
        s = s * 0.5 + i
    return s
""",
    "a loop that LLVM vectorises": """
def program(x, n):
    s = 0
    for i in range(n):
        s ^= (i & 1023) * 7 ^ (i >> 3)
    return s
""",
    "elements": """
def program(x, n):
    y = np.zeros(64)
    for i in range(n):
        y[i % 64] = x[i % 1000] + y[(i + 1) % 64]
    return y
""",
    "a branch in a counted loop": """
def program(x, n):
    s = 0.0
    for i in range(n):
        if x[i % 1000] > 0.0005:
            s += x[i % 1000]
    return s
""",
    "a break": """
def program(x, n):
    s = 0.0
    for i in range(n):
        s += x[i % 1000]
        if s < 0:
            break
    return s
""",
    "a short kernel": """
def program(x, n):
    v = x[:16] * 1.0
    for i in range(n):
        v = v * 0.5 + 1.0
    return v
""",
    "a long kernel": """
def program(x, n):
    v = x * 1.0
    for i in range(n):
        v = np.sin(v) + np.exp(-v) * np.cos(v) + np.cbrt(v)
    return v
""",
    "a kernel in one branch": """
def program(x, n):
    v = x * 1.0
    for i in range(n):
        if v[0] < 2.0:
            v = np.cos(v) * 0.5
    return v
""",
    "nested": """
def program(x, n):
    t = 0.0
    for i in range(n):
        s = 0.0
        for j in range(1000):
            s += x[j] * i
        t = t * 0.5 + s
    return t
""",
    "copies": """
def program(x, n):
    a = x.reshape(2, 100_000) * 1.0
    b = x.reshape(2, 100_000) * 2.0
    for i in range(n):
        b[i % 2] = a[(i + 1) % 2]
        a[i % 2] = b[(i + 1) % 2]
    return a
""",
    "a library call": """
def program(x, n):
    v = x[:1000] * 1.0
    for i in range(n):
        v = np.sort(v)[::-1] * 0.5
    return v
""",
    "prints": """
def program(x, n):
    s = 0.0
    for i in range(n):
        s = s * 0.5 + i
        if s < 0:
            fusec.print(s)
    return s
""",
    "step by step": """
def program(x, n):
    v = x[:1000] * 1.0
    i = 0
    while i < n:
        k = int(v[0]) + 5
        v = v + v[:k].sum() * 0.0
        v = np.linalg.norm(v) * 0.0 + v
        i += 1
    return v
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send there")
@pytest.mark.parametrize("form", FORMS)
def test_other_threads_run_and_control_c_ends_the_loop(form: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(program=FORMS[form].strip()))
    process = subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()  # a loop that does not stop would run on
    assert process.returncode == 0, out + error
    native, latencies = out.splitlines()
    assert native == "True" or form == "step by step"
    to_end, to_run = map(float, latencies.split())
    assert to_end < 1.0 and to_run < 0.5


def test_a_handler_that_does_not_raise_leaves_the_loop_going() -> None:
    seen: list[int] = []
    program = fusec.jit(_halved)
    program(2)
    expected = program(3)
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        start = time.perf_counter()
        program(60_000_000)
        took = time.perf_counter() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(seen) >= min(took / 0.2, 1)
    assert program(3) == expected


def _halved(n: int) -> float:
    s = 0.0
    for i in range(n):
        s = s * 0.5 + i
    return s


def test_loops_of_several_threads_run_at_once() -> None:
    program = fusec.jit(_halved)
    expected = {n: _halved(n) for n in (1000, 2000, 3000)}
    program(2)
    results: list[bool] = []

    def work() -> None:
        for _ in range(50):
            results.extend(program(n) == value for n, value in expected.items())
            program(300_000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 600 and all(results)


def test_the_lock_is_held_again_at_an_error_exit() -> None:
    @fusec.jit
    def program(x: np.ndarray, n: int) -> float:
        s = 0.0
        for i in range(n):
            s = s * 0.5 + x[i]
        return s

    x = np.ones(2_000_000)
    assert program(x, 3) == 1.75 and program(x, 4) == 1.875
    with pytest.raises(IndexError, match="index 2000000 is out of bounds"):
        program(x, 3_000_000)
    assert program(x, 3) == 1.75


def test_short_loops_do_not_give_up_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving it up costs a switch interval where another thread wants it."""
    calls: list[str] = []
    make = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)

    def spied(name: str) -> Callable[[int], int]:
        return make(lambda _: calls.append(name) or 0)

    spies = {name: spied(name) for name in interrupts.addresses()}
    addresses = {name: ctypes.cast(spy, ctypes.c_void_p).value for name, spy in spies.items()}
    monkeypatch.setattr(interrupts, "addresses", lambda: addresses)

    @fusec.jit
    def program(x: np.ndarray, n: int) -> np.ndarray:
        v = x
        for _ in range(n):
            v = v * 0.5 + 1.0
        return v

    x = np.ones(16)
    for n in (2, 3, 50):
        program(x, n)
    assert set(calls) == {"hold"}
    program(x, 10_000)
    assert "poll" in calls


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork to send the signal from")
def test_a_signal_before_python_is_called_is_not_lost(tmp_path: Path) -> None:
    """Nothing is raised inside ctypes, which prints exceptions and goes on."""
    file = tmp_path / "program.py"
    file.write_text("""
import os, signal
import numpy as np
import fusec

def program(x, n):
    v = x * 1.0
    for i in range(n):
        v = np.sort(v)[::-1] * 0.5 + x
    return v

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

f, x = fusec.jit(program), np.arange(8.0)
f(x, 2), f(x, 3)
good = f(x, 400)
signal.signal(signal.SIGALRM, stop)
stopped = 0
for k in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4 + 3e-6 * k)
        result = f(x, 400)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert np.array_equal(result, good)
    except Stop:
        stopped += 1
print(stopped)
""")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0 and "Exception ignored" not in done.stderr
