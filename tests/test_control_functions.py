"""`fusec.cond`, `switch`, `while_loop`, `fori_loop`, `scan` and `map`, eager and compiled."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from typing import Any

import numpy as np
import optree
import pytest

import fusec

X = np.linspace(0.1, 1.0, 40)
ROWS = np.arange(60.0).reshape(20, 3)
Pair = namedtuple("Pair", "a b")


def same(f: Any, *args: Any) -> Any:
    """The compiled function's result: the eager one's in kind, and in value up to rounding."""
    eager, compiled = f(*args), fusec.jit(f)(*args)
    (mine, structure), (theirs, other) = map(optree.tree_flatten, (compiled, eager))
    assert structure == other
    for a, b in zip(mine, theirs, strict=True):
        assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-13)
    return compiled


def ops(f: Any, *args: Any) -> set[str]:
    return {node.op for node in fusec.jit(f).trace(*args).graph.nodes}


# ------------------------------------------------------------------------------------- branches


@pytest.mark.parametrize("limit", [0.0, 1e9])
def test_cond_runs_one_side(limit: float) -> None:
    def f(x: Any, limit: Any) -> Any:
        return fusec.cond(x.sum() > limit, lambda v: np.linalg.inv(v), lambda v: v - 1, x)

    x = np.eye(3) if limit == 0.0 else np.zeros((3, 3))  # which has no inverse
    same(f, x, limit)
    assert "Cond" in ops(f, x, limit)


def test_the_example_of_the_specification() -> None:
    f = fusec.jit(lambda x, y: fusec.cond(np.equal(y, 0.0), lambda: y, lambda: x / y))
    with np.errstate(all="raise"):
        assert f(2.0, 0.0) == 0.0 and f(2.0, 4.0) == 0.5
    assert f.trace_count == 1


def test_cond_of_python_values() -> None:
    assert fusec.cond([], lambda: 1, lambda: 2) == 2
    with pytest.raises(ValueError, match="truth value"):
        fusec.cond(X > 0.5, lambda: 1, lambda: 2)
    with pytest.raises(ValueError, match="truth value"):
        fusec.jit(lambda x: fusec.cond(x > 0.5, lambda: 1, lambda: 2))(X)


@pytest.mark.parametrize("index", [0, 1, 2, -1, -3])
def test_switch(index: int) -> None:
    def f(x: Any, i: Any) -> Any:
        return fusec.switch(i, [lambda v: v * 2, np.cos, lambda v: v.cumsum()], x)

    same(f, X, index)
    same(f, X, np.int64(index))


@pytest.mark.parametrize("index", [3, -4, np.int64(3), np.int64(-4)])
def test_an_index_that_no_branch_has(index: Any) -> None:
    def f(i: Any) -> Any:
        return fusec.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0])

    for call in (f, fusec.jit(f)):
        with pytest.raises(IndexError, match="out of range"):
            call(index)


def test_switch_of_a_fraction() -> None:
    with pytest.raises(TypeError, match="no integer"):
        fusec.switch(0.5, [lambda: 1, lambda: 2])


# ---------------------------------------------------------------------------------------- loops


def test_while_loop() -> None:
    def newton(a: Any) -> Any:
        return fusec.while_loop(lambda x: abs(x * x - a) > 1e-9, lambda x: (x + a / x) / 2, a)

    same(newton, np.float64(7.0))
    assert "Loop" in ops(newton, np.float64(7.0))


def test_while_loop_of_a_pytree() -> None:
    def f(x: Any) -> Any:
        return fusec.while_loop(
            lambda s: s["r"].sum() > 1e-3, lambda s: {"r": s["r"] / 2, "n": s["n"] + 1.0},
            {"r": x, "n": 0.0})

    assert same(f, X)["n"] == 15.0


def test_fori_loop() -> None:
    def f(x: Any, n: Any) -> Any:
        return fusec.fori_loop(1, n, lambda i, v: v * 0.5 + i, x)

    same(f, X, 0)
    same(f, X, 1000)
    assert "Loop" in ops(f, X, 1000)


def test_fori_loop_writes_in_place() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            v[i] = v[i - 1] * 0.9 + i
            return v

        return fusec.fori_loop(1, len(x), body, x.copy())

    same(f, X)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_scan(n: int, reverse: bool) -> None:
    def f(x: Any) -> Any:
        return fusec.scan(lambda c, v: (c * 0.5 + v, c * v), 1.0, x, reverse=reverse)

    last, ys = same(f, X[:n])
    carry, expected = 1.0, np.empty(n)
    for i in reversed(range(n)) if reverse else range(n):
        carry, expected[i] = carry * 0.5 + X[i], carry * X[i]
    np.testing.assert_allclose((last, *ys), (carry, *expected), rtol=1e-13)


def test_scan_of_pytrees() -> None:
    def f(x: Any, r: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            c = {"s": c["s"] + v["r"] * v["x"]}
            return c, Pair(c["s"].max(), (v["r"], None))

        return fusec.scan(step, {"s": np.zeros(3)}, {"x": x, "r": r})

    _, ys = same(f, X[:20], ROWS)
    assert type(ys) is Pair and ys.a.shape == (20,) and ys.b[0].shape == (20, 3)


def test_scan_by_length() -> None:
    def f(x: Any) -> Any:
        return fusec.scan(lambda c, _: (c * 1.0001, None), x, length=5000)

    carry, ys = same(f, X)
    assert ys is None and carry.shape == X.shape
    assert "Loop" in ops(f, X)


def test_map() -> None:
    assert np.array_equal(same(lambda r: fusec.map(lambda v: v.sum(), ROWS), ROWS), ROWS.sum(1))
    same(lambda x, r: fusec.map(lambda p: p[0] * p[1], (x, r)), X[:20], ROWS)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: fusec.scan(lambda c, x: (c, x), 0.0), "give xs or length"),
    (lambda: fusec.scan(lambda c, x: (c, x), 0.0, X, length=3), r"length: \[3, 40\]"),
    (lambda: fusec.map(lambda x: x, (X, ROWS)), r"length: \[20, 40\]"),
    (lambda: fusec.map(lambda x: x, X[:0]), "no elements"),
])
def test_lengths(call: Any, words: str) -> None:
    for run in (call, fusec.jit(call)):
        with pytest.raises(ValueError, match=words):
            run()


def test_results_that_change_their_type_are_refused() -> None:
    def f(x: Any) -> Any:
        return fusec.scan(lambda c, v: (c + v, c), 0, x)  # int first, floats from then on

    for run in (f, fusec.jit(f)):
        with pytest.raises(TypeError, match=r"y was int64\[\] in the first step and is float64"):
            run(X)


def test_functions_of_other_modules_and_methods() -> None:
    class Decay:
        rate = 0.25

        def step(self, carry: Any, x: Any) -> Any:
            return carry * self.rate + x, carry

    model = Decay()
    same(lambda x: fusec.scan(model.step, np.float64(0.0), x), X)
    same(lambda x: fusec.map(np.sin, x), X)
    same(lambda x: fusec.map(fusec.jit(lambda v: v * 2), x), X)


def test_they_need_no_tracer() -> None:
    code = ("import sys, fusec; print(fusec.cond(True, lambda: 1, lambda: 2)); "
            "print('fusec.trace.tracer' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


def test_numbers_have_no_first_axis() -> None:
    with pytest.raises(TypeError, match="holds a int, which has no first axis"):
        fusec.map(lambda x: x, [1, 2, 3])


# ------------------------------------------------------------------------------- errors name


@pytest.mark.parametrize("wrong", [
    lambda x, p: fusec.cond(p > 0, lambda: x + 1, lambda: (x, x)),
    lambda x, p: fusec.while_loop(lambda c: c.sum() < p, lambda c: (c, c), x),
])
def test_errors_name_the_line_of_the_call(wrong) -> None:
    with pytest.raises(TypeError) as caught:
        fusec.jit(wrong)(np.ones(3), np.float64(1))
    assert f"{__file__}:{wrong.__code__.co_firstlineno}" in str(caught.value)
    assert fusec.api.control_functions.__file__ not in str(caught.value)


def test_map_of_nothing_says_map() -> None:
    for nothing in (np.zeros((0, 3)), []):
        with pytest.raises(ValueError, match=r"^map: no"):
            fusec.map(np.sin, nothing)
    with pytest.raises(TypeError, match=r"^map: xs holds a float"):
        fusec.map(np.sin, [1.0, 2.0])
