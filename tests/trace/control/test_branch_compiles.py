"""Long chains of branches on data: right, and their cost grows with their length alone."""

from __future__ import annotations

import cProfile
import itertools
from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(3.0) + 7
ARMS = {
    "return": ("    if n == 0:\n        return x\n", "    elif n == {i}:\n        return x + {i}\n",
               "    return -x\n"),
    "assign": ("    if n == 0:\n        y = x\n", "    elif n == {i}:\n        y = x + {i}\n",
               "    else:\n        y = -x\n    return y * 2\n"),
    "early": ("", "    if n == {i}:\n        return x + {i}\n", "    return -x\n"),
    "names": ("    a = b = x * 0\n    c = 0.0\n    if n == 0:\n        a = x * 3\n",
              "    elif n == {i}:\n        b, c = x + {i}, n * 2.0\n",
              "    else:\n        a, b = -x, x * n\n    return a + b - c\n"),
    "items": ("    if n == 0:\n        y = x[n]\n", "    elif n == {i}:\n        y = x[n - {i}]\n",
              "    else:\n        y = x[1]\n    return y\n"),
    "written": ("    y = x * 1\n    if n == 0:\n        y[n] = 5.0\n",
                "    elif n == {i}:\n        y[n - {i}:] = {i}\n        x = y + x\n",
                "    return x - y\n"),
    "loop": ("    s = x * 0\n    for k in range(n - 1, n + 2):\n     if k == 0:\n"
             "        s = s + 1\n",
             "     elif k == {i}:\n        s = s * 2 + {i}\n", "    return s\n"),
}


def chain(kind: str, count: int, tmp_path: Any) -> Any:
    first, arm, last = ARMS[kind]
    text = "def f(x, n):\n" + first + "".join(arm.format(i=i) for i in range(1, count)) + last
    file = tmp_path / f"chain_{count}.py"
    file.write_text(text)
    space = {"np": np, "__name__": "chain"}
    exec(compile(text, str(file), "exec"), space)
    return space["f"]


@pytest.mark.repeats
@pytest.mark.parametrize("kind", list(ARMS))
def test_chains_of_elif_on_data(kind, tmp_path):
    f = chain(kind, 150, tmp_path)
    jitted = fusec.jit(f)
    for n in (-3, 0, 1, 77, 149, 150, 200):
        np.testing.assert_array_equal(jitted(X, np.int64(n)), f(X, np.int64(n)))
    assert jitted.trace_count == 1


@pytest.mark.repeats
@pytest.mark.parametrize("kind", list(ARMS))
def test_the_work_of_a_chain_is_linear(kind, tmp_path, compiled):
    """Calls of Python, the text for LLVM, and values live through all of the compiled code."""
    fusec.jit(chain(kind, 10, tmp_path))(X, np.int64(1))  # what is made once in a process
    calls, sizes, live = [], [], []
    for count in (30, 60, 120):
        jitted = fusec.jit(chain(kind, count, tmp_path))
        fusec.clear_caches()  # no code of another chain
        compiled.clear()
        profile = cProfile.Profile(builtins=False)
        profile.runcall(jitted, X, np.int64(1))
        calls.append(sum(row.callcount for row in profile.getstats()))
        function = max(compiled, key=len)
        sizes.append(len(function))
        live.append(loads_at_entry(function))
    assert calls[2] - calls[1] < 2.4 * (calls[1] - calls[0])
    assert sizes[2] - sizes[1] < 2.4 * (sizes[1] - sizes[0])
    assert live[2] < 256  # LLVM's register allocator takes the square of them


def loads_at_entry(function: str) -> int:
    lines = function.partition("entry:\n")[2].splitlines()
    return sum(" load " in line for line in itertools.takewhile(
        lambda line: line.startswith("  "), lines))


def test_what_the_arms_make_is_made_in_the_results_memory(tmp_path, compiled):
    """A copy for each arm before this one would be another square, in time and memory."""
    jitted = fusec.jit(chain("return", 50, tmp_path))
    jitted(X, np.int64(1))
    assert max(compiled, key=len).count("@llvm.memmove") < 5
