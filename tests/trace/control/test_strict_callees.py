"""Functions that must not round as their caller may: calls of their own."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

f8, i8 = np.float64, np.int64


@fusec.jit(fp="strict")
def exact(a, b, c):
    return a * b + c


@fusec.jit
def free(a, b, c):
    return a * b + c


def numbers(seed: int) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).normal(size=(3, 200)))


def test_a_strict_function_is_strict_in_one_that_is_not() -> None:
    @fusec.jit
    def f(a, b, c):
        return exact(a, b, c), a * b + c

    a, b, c = numbers(1)
    found, contracted = f(a, b, c)
    np.testing.assert_array_equal(found, a * b + c)
    assert not np.array_equal(contracted, a * b + c)  # rounded once
    (call,) = [n for n in f.traces[0].graph.nodes if n.op == "Call"]
    assert call.attrs["fp"] == "strict"
    assert all(s.run.is_native for s in f.traces[0].build.call_plan.externs)
    again = fusec.admit(f.traces[0].graph.to_json()).function()
    np.testing.assert_array_equal(again(a, b, c)[0], a * b + c)


def test_a_function_that_may_round_once_need_not() -> None:
    @fusec.jit(fp="strict")
    def f(a, b, c):
        return free(a, b, c)

    a, b, c = numbers(2)
    np.testing.assert_array_equal(f(a, b, c), a * b + c)
    assert "Call" not in f.traces[0].graph.ops


def test_a_strict_function_in_a_loop_and_a_free_one_in_it() -> None:
    @fusec.jit(fp="strict")
    def step(x, b, c):
        return free(x, b, c) * 0.5

    @fusec.jit
    def f(x, b, c, n):
        for _ in range(n):
            x = step(x, b, c)
        return x

    a, b, c = numbers(3)
    expected = a
    for _ in range(100):
        expected = (expected * b + c) * 0.5
    np.testing.assert_array_equal(f(a, b, c, 100), expected)
    (step_,) = f.traces[0].build.call_plan.externs
    assert step_.run.is_native


def test_a_strict_function_that_writes_is_traced_with_its_caller() -> None:
    @fusec.jit(fp="strict")
    def add(x, y):
        x += y
        return x.sum()

    @fusec.jit
    def f(x, y):
        return add(x, y) + add(x, y)

    x = np.ones(3)
    assert f(x, np.ones(3)) == 15.0
    assert x.tolist() == [3.0] * 3
    assert any("add has fp='strict'" in note for note in f.traces[0].build.traced.notes)


def test_a_strict_function_that_appends_or_gives_any_size() -> None:
    @fusec.jit(fp="strict")
    def keep(x, kept):
        kept.append(x * 2.0)
        return x[x > 0.0]

    @fusec.jit
    def f(x):
        kept = []
        return keep(x, kept).sum(), kept

    total, kept = f(np.array([1.0, -2.0, 3.0]))
    assert total == 4.0 and [k.tolist() for k in kept] == [[2.0, -4.0, 6.0]]


def test_a_strict_function_that_recurses_and_one_that_raises() -> None:
    @fusec.jit(fp="strict")
    def horner(x, n):
        if n < 0:
            raise ValueError("negative")
        if n == 0:
            return x
        return horner(x, n - 1) * 1.1 + 0.3

    @fusec.jit
    def f(x, n):
        return horner(x, n) * 2.0 + 1.0

    x = 0.123456
    for _ in range(7):
        x = x * 1.1 + 0.3
    assert f(f8(0.123456), i8(7)) in (x * 2.0 + 1.0, np.nextafter(x * 2.0 + 1.0, 9),
                                      np.nextafter(x * 2.0 + 1.0, 0))
    with pytest.raises(ValueError, match="negative"):
        f(f8(1.0), i8(-1))
