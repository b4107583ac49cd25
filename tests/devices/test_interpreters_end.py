"""Calls at the interpreter's end: by exit handlers, which may have been registered before fusec was
imported, and by threads that go on."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading, time
when = sys.argv[1]
def right():
    print(bool((f(x, m) == want).all()), flush=True)
def joined():
    stopped.set()
    worker.join()
    right()
if when in ("before", "busy"):
    atexit.register(right)  # called after fusec's own
if when == "joined":
    atexit.register(joined)
import numpy as np
import fusec
fusec.config.logical_cpu_devices = 2
@fusec.jit
def f(x, m):
    with fusec.device("CPU:1"):
        y = np.sort(x)[::-1]
    with fusec.device("CPU:0"):
        z = np.linalg.inv(m + np.eye(3))
    return y + z[0, 0]
x, m = np.linspace(0, 1, 500), np.eye(3)
want = f(x, m)
def run(calls):
    for _ in range(calls):
        f(x, m)
    right()
if when == "after":
    atexit.register(right)
if when == "thread":
    threading.Thread(target=run, args=(500,)).start()
if when == "daemons":
    for _ in range(3):
        threading.Thread(target=run, args=(10**9,), daemon=True).start()
    time.sleep(0.2)
    print(True)
if when == "joined":
    stopped = threading.Event()
    def work():
        while not stopped.is_set():
            f(x, m)
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    time.sleep(0.1)
if when == "busy":  # for longer than the end waits for
    from fusec.runtime.devices import registry
    begun = threading.Event()
    registry.devices()[1].submit(lambda: (begun.set(), time.sleep(1.2)))
    begun.wait()
"""


def ended(program: str, *args: str) -> tuple[int, str, str]:
    """How the program ends: its status, and its output."""
    process = subprocess.run([sys.executable, "-c", program, *args], timeout=60, text=True,
                             capture_output=True, check=False)
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize("when", ["before", "after", "thread", "daemons", "joined", "busy"])
def test_steps_at_the_interpreters_end(when: str) -> None:
    assert ended(PROGRAM, when) == (0, "True\n", "")


STRUCTURES = """
import atexit
def at_end():
    print(f(ones, [ones, {"a": ones, "b": -ones}], k=(2.0,)))
    print(f(ones, [ones, {"b": -ones, "a": ones}], k=(2.0,)))
    print(f(ones, [ones, {"a": 3.0, "b": -ones}], k=(2.0,)))
    print(g())
    for tree in ([ones, {"a": ones}], [ones, (ones, -ones)], (ones, {"a": ones, "b": -ones})):
        try:
            f(ones, tree, k=(2.0,))
        except RuntimeError as error:
            print(str(error).splitlines()[0])
atexit.register(at_end)
import numpy as np
import fusec
@fusec.jit
def f(x, tree, k):
    first, more = tree
    return {"sum": float(x[0]) + first + sum(more.values()) * k[0], "keys": [*more]}
@fusec.jit
def g():
    return np.arange(3).sum()
ones = np.ones(2)
f(ones, [ones, {"a": ones, "b": -ones}], k=(2.0,))
f(ones, [ones, {"b": -ones, "a": ones}], k=(2.0,))
f(ones, [ones, {"a": 3.0, "b": -ones}], k=(2.0,))
g()
"""


def test_structures_that_were_met_before_are_known_at_the_end() -> None:
    """optree may have forgotten them: it clears its tables in a handler of its own."""
    status, printed, errors = ended(STRUCTURES)
    assert (status, errors) == (0, "")
    lines = printed.splitlines()
    assert lines[:4] == [
        "{'sum': array([2., 2.]), 'keys': ['a', 'b']}",
        "{'sum': array([2., 2.]), 'keys': ['b', 'a']}",
        "{'sum': array([6., 6.]), 'keys': ['a', 'b']}", "3"]
    assert all("another structure" in line for line in lines[4:])
