"""The cost of compiling loops, and that they can be stopped: counted, never timed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.hooks import loop_tracer as hooks


def recurrence(x, a):
    for i in range(1, len(x)):
        x[i] = a * x[i - 1] + x[i]
    return x


def counted_only(x, n):
    s, t = x[0], 0
    for i in range(n):
        s = s * 0.5 + x[i % 4]
        if s > 1.5:
            t += 1
    return s, t


def until(x, limit):
    k, s = 0, x[0]
    while s < limit:
        s += 1
        k += 1
    return k


def nested(a, n):
    """Sums over rows whose length grows with the counter."""
    s = 0.0
    for i in range(n):
        s += a[i % 7, : i % 7] @ a[i % 5, : i % 7]
    return s


def triangle(a):
    """Cholesky's rows: nested loops, inner products of run-time length."""
    n = len(a)
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
    return a


def spd(n: int) -> np.ndarray:
    a = np.random.default_rng(n).normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


SMALL_AND_LARGE: list[tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = [
    (recurrence, lambda n: (np.linspace(0, 1, n), 0.5)),
    (counted_only, lambda n: (np.arange(4.0), n)),
    (until, lambda n: (np.ones(4), float(n))),
    (nested, lambda n: (np.arange(49.0).reshape(7, 7), n)),
]


def structure(concrete: Any) -> tuple[Any, ...]:
    """The parts of a trace, sizes aside."""
    graph = concrete.optimized_graph
    return ([n.op for n in graph.nodes if n.op not in ("Const", "Input")], len(concrete.kernels),
            [(c.name, c.is_native, c.run.nests) for c in concrete.control])


@pytest.mark.parametrize(("f", "arguments"), SMALL_AND_LARGE, ids=lambda x: x.__name__)
def test_compiling_does_not_depend_on_the_trip_count(
    f: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]], compiled: list[str],
) -> None:
    """The code of 10^2 iterations is that of 10^6: known when a second function asks for it."""
    few, many = fusec.jit(f), fusec.jit(f)
    few(*arguments(100))
    count, before = len(compiled), structure(few.traces[-1])
    assert few.traces[-1].control[0].is_native
    np.testing.assert_allclose(many(*arguments(10**6)), f(*arguments(10**6)), rtol=1e-9)
    assert structure(many.traces[-1]) == before
    assert len(compiled) == count
    many(*arguments(777))  # here an int becomes an argument, which is code of its own
    count = len(compiled)
    for n in (10**6, 100, 12_345):
        np.testing.assert_allclose(many(*arguments(n)), f(*arguments(n)), rtol=1e-9)
        assert structure(many.traces[-1]) == before
    assert len(compiled) == count


def test_nested_loops_over_growing_slices_compile_once(compiled: list[str]) -> None:
    jitted = fusec.jit(triangle)
    jitted(spd(80))
    count, before = len(compiled), structure(jitted.traces[-1])
    for n in (100, 81, 300):
        np.testing.assert_allclose(np.tril(jitted(spd(n))), np.linalg.cholesky(spd(n)), rtol=1e-9)
        assert structure(jitted.traces[-1]) == before
    assert len(compiled) == count


# --- Ctrl-C --------------------------------------------------------------------------------------

INTERRUPTED = """
    import _thread, signal, sys, threading, time
    import numpy as np
    import fusec

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    {program}

    f = fusec.jit(program)
    x, a = np.zeros(8), np.ones((64, 64))
    f(x, a, 3)
    x[:] = 0
    f.concrete(x, a, 1 << 40)           # compiled before the clock runs
    print(f.traces[-1].control[0].is_native, flush=True)
    try:
        print("ready", flush=True)
        f(x, a, 1 << 40)
    except KeyboardInterrupt:
        print("KeyboardInterrupt", flush=True)
    print(len(set(x.tolist())) == 1)
    y, a = np.zeros(8), np.ones((64, 64))
    f(y, a, 5)                          # and the function goes on working
    print(y.tolist() == [5.0] * 8)
"""
PROGRAMS = {
    "extents of the run": """
def program(x, a, n):
    for i in range(n):
        k = i % 60
        a[k, k] = a[k, :k] @ a[2, :k] * 0 + 1
        x += a[k, k]
""",
    "exchanged arrays": """
def program(x, a, n):
    for i in range(n):
        x[:] = np.cumsum(x * 0 + 1)[0] + x[::-1]
""",
    "a while loop": """
def program(x, a, n):
    i = 0
    while i < n:
        x += 1
        i += 1
""",
    "nested": """
def program(x, a, n):
    for i in range(n):
        s = 0.0
        for j in range(64):
            s += a[i % 64, j]
        x += s / s
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send there")
@pytest.mark.parametrize("name", PROGRAMS)
def test_control_c_stops_a_native_loop(name: str, tmp_path: Any) -> None:
    """KeyboardInterrupt; the argument is as whole iterations left it, or as it was before."""
    program = textwrap.dedent(INTERRUPTED).format(program=PROGRAMS[name].strip())
    file = tmp_path / "interrupted.py"
    file.write_text(program)
    process = subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(2)]
    assert lines == ["True", "ready"]
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()  # a loop that does not stop would run on
    assert rest.split() == ["KeyboardInterrupt", "True", "True"]
    assert process.returncode == 0


def refused_inside(x: Any, n: int) -> Any:
    """Which array the last line reads is known by the run alone, so no loop can be in the graph."""
    v = x[:4]
    for i in range(3):
        if x[i] > n:
            break
        for j in range(4):
            for k in range(4):
                v = x[4:] if x[j] > x[k + 1] else x[:4]
                x[k] += v[j] * 0.5
    return x, v[0]


def test_a_loop_that_the_graph_refuses_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each iteration and attempt of the loops around it would find that out again."""
    tried = []
    trace_loop = hooks.trace_loop

    def counted(trace: Any, parts: Any, *rest: Any) -> Any:
        tried.append(parts.where)
        return trace_loop(trace, parts, *rest)

    monkeypatch.setattr(hooks, "trace_loop", counted)
    x = np.linspace(0.0, 1.0, 8)
    found = fusec.jit(refused_inside, fp="strict")(x.copy(), 2)
    expected = refused_inside(x.copy(), 2)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert len(tried) == 3  # one of the graph is one at once where it is met again
