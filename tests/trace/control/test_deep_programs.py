"""Long expressions, long chains of branches, deep recursion: they work, or raise RecursionError."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import fusec
from fusec.core.process import stack

X = np.arange(3.0) + 7
CHAIN = "def f(x, n):\n    if n == 0:\n        return x\n" + "".join(
    f"    elif n == {i}:\n        return x + {i}\n" for i in range(1, 300)) + "    return -x\n"


def written(tmp_path, text):
    file = tmp_path / "deep.py"
    file.write_text(text)
    space = {"np": np, "__name__": "deep"}
    exec(compile(text, str(file), "exec"), space)
    return space["f"]


@pytest.mark.parametrize("terms", [
    " + ".join(f"x * {i}.5" for i in range(500)),
    "np.sin(" * 150 + "x" + ")" * 150,
])
def test_500_terms_and_150_nested_calls(tmp_path, terms):
    f = written(tmp_path, f"def f(x):\n    return {terms}\n")
    limit = sys.getrecursionlimit()
    np.testing.assert_allclose(fusec.jit(f)(X), f(X), rtol=1e-13)
    assert sys.getrecursionlimit() == limit


def test_300_elifs(tmp_path):
    f = written(tmp_path, CHAIN)
    jitted = fusec.jit(f, static="n")
    for n in (0, 299, 300):
        assert (jitted(X, n) == f(X, n)).all()


RECURSION = """
import sys, numpy as np, fusec
sys.setrecursionlimit({limit})
def plain(x, n):
    return x if n == 0 else plain(x + 1, n - 1)
def mapped(x, n):
    return list(map(lambda v: mapped(v, n - 1), [x]))[0] if n else x
class Chain:
    def __init__(self, n):
        self.n = n
    def __add__(self, x):
        return Chain(self.n - 1) + x if self.n else x
    @property
    def value(self):
        return Chain(self.n - 1).value if self.n else 1.0
def operators(x, n):
    return Chain(n) + x
def properties(x, n):
    return Chain(n).value * x
f = fusec.jit({name}, static="n")
try:
    f(np.ones(2), 15_000)
except RecursionError as error:
    print("stopped", sys.getrecursionlimit())
print(f(np.ones(2), 20).shape)
"""


@pytest.mark.parametrize("name", ["plain", "mapped", "operators", "properties"])
def test_recursion_that_the_users_limit_allows_ends_in_an_exception(name):
    text = RECURSION.format(limit=60_000, name=name)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split("\n")[:2] == ["stopped 60000", "(2,)"]


def test_the_limit_is_what_the_stack_holds_and_is_given_back():
    before = sys.getrecursionlimit()
    with stack.deeper():
        inside = sys.getrecursionlimit()
        with stack.deeper():
            assert sys.getrecursionlimit() == inside
    assert before < inside <= 8 << 20
    assert sys.getrecursionlimit() == before


def halved(c, m):
    return c if m == 0 else halved(c * 0.5 + 1.0, m - 1)


def recursion_in_a_loop(x, n):
    total = 0.0
    for i in reversed(range(n % 9)):
        total = halved(x[i], n % 4)
    return total


def called_at(depth, f, *args):
    return f(*args) if depth == 0 else called_at(depth - 1, f, *args)


def test_recursion_that_data_ends_in_a_loop_that_data_ends():
    """Where the limit was hit in a frame of the program it was an exception of the program's."""
    x = np.arange(12.0)
    for depth in range(8):
        fast = fusec.jit(recursion_in_a_loop)
        for n in (3, 14):  # a second value would be an int of the run, were it not needed
            assert called_at(depth, fast, x, n) == recursion_in_a_loop(x, n)
