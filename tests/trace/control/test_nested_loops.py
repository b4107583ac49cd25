"""Nodes traced of nests of short loops: each level more adds to it, and does not multiply it."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import fusec
from fusec.trace.control.attempts import Attempt

X = np.linspace(0.1, 1.0, 12)


def counted(depth: int) -> str:
    """Loops that data may leave."""
    lines = ["def f(x):", "    s = 0.0"]
    for k in range(depth):
        lines += [f"{'    ' * (k + 1)}for i{k} in range(3):",
                  f"{'    ' * (k + 2)}if s > {50 + k}.0 and x[i{k}] > 0.2: break"]
    return "\n".join([*lines, "    " * (depth + 1) + "s = s + x[i0]", "    return s"])


def whiles(depth: int) -> str:
    """The same where Python knows the tests."""
    lines = ["def f(x):", "    s = 0.0"]
    for k in range(depth):
        lines += [f"{'    ' * (k + 1)}i{k} = 0", f"{'    ' * (k + 1)}while True:",
                  f"{'    ' * (k + 2)}i{k} += 1",
                  f"{'    ' * (k + 2)}if i{k} > 2 + x[0]: break"]
    return "\n".join([*lines, "    " * (depth + 1) + "s = s + x[i0]", "    return s"])


def calls(depth: int) -> str:
    """A loop in a function that a loop of the next calls."""
    lines = ["def g0(x, s):", "    return s + x[0]"]
    for k in range(1, depth + 1):
        lines += [f"def g{k}(x, s):", "    for i in range(3):",
                  f"        if s > {50 + k}.0 and x[i] > 0.2: break",
                  f"        s = g{k - 1}(x, s)", "    return s"]
    return "\n".join([*lines, "def f(x):", f"    return g{depth}(x, 0.0)"])


def products(depth: int) -> str:
    """Loops that are too heavy to be written out."""
    lines = ["def f(x):", "    s, a = x[:9].reshape(3, 3) * 0.0, x[:9].reshape(3, 3)"]
    lines += [f"{'    ' * (k + 1)}for i{k} in range(3):" for k in range(depth)]
    step = f"s = s * 0.5 + (a * x[i0]) @ (s + a * x[i{depth - 1}])"
    return "\n".join([*lines, "    " * (depth + 1) + step, "    return s"])


def writes(depth: int) -> str:
    """The same that write to an array from before them, and bind another one anew."""
    lines = ["def f(x):", "    a = x[:9].reshape(3, 3)", "    s, t = a * 0.0, a * 2.0"]
    lines += [f"{'    ' * (k + 1)}for i{k} in range(3):" for k in range(depth)]
    inside = "    " * (depth + 1)
    return "\n".join([*lines, f"{inside}t = t * 0.5 + a @ s",
                      f"{inside}s[i0] += (a * x[i0]) @ (t[i{depth - 1}] + a[i0])", "    return s"])


def other_values(depth: int) -> str:
    """Loops of a function that leave other things as they are, and write other arrays, where it is
    called again."""
    lines = ["def g(x, n, s, t):"]
    lines += [f"{'    ' * (k + 1)}for i{k} in range(40):" for k in range(depth)]
    inside = "    " * (depth + 1)
    return "\n".join([*lines, f"{inside}n = min(n + 1, 3) if x[0] < 1.0 else n",
                      f"{inside}s = s if n == 3 else s * 0.9 + t[0]", f"{inside}t[n] += s[1] * 0.1",
                      "    return n, s", "def f(x):", "    t, u = x * 1.0, x * 2.0",
                      "    n, s = g(x, 3, x * 0.5, t)", "    m, r = g(x, 0, s, u)",
                      "    k, q = g(x, 3, t, u)", "    return s + r + t + u + q + n + m + k"])


def traced_bodies(source: str, folder, monkeypatch) -> int:
    """How often a body of a loop is traced to be one of the graph; the values are NumPy's."""
    path = folder / "nest.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("nest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    runs, run = [], Attempt.run
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "run", lambda attempt: (runs.append(attempt), run(attempt)))
        np.testing.assert_allclose(fusec.jit(module.f)(X), module.f(X), rtol=1e-12)
    return len(runs)


@pytest.mark.parametrize(("program", "low", "most"), [
    (counted, 6, 30), (whiles, 5, 30), (calls, 6, 30), (products, 6, 24),
    (writes, 5, 26), (other_values, 2, 24)])
def test_a_level_more_adds_to_what_is_traced(program, low, most, tmp_path, monkeypatch):
    bodies = traced_bodies(program(low), tmp_path, monkeypatch)
    assert bodies <= most
