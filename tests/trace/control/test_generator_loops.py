"""``for v in (f(t) for t in x)``: a loop of the graph over ``x``, in Python's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.random.default_rng(5).standard_normal(2000)


def summed(x: Any) -> Any:
    total = 0.0
    for v in (t * 2 for t in x):
        total += v
    return total


def filtered(x: Any) -> Any:
    total = 0.0
    for v, w in ((i * u, u) for i, u in enumerate(x) if i % 2 if u > 0):
        if w > 2.5:
            break
        total += v - w
    else:
        total = -total
    return total


def its_own_variable(x: Any) -> Any:
    t, total = 5.0, 0.0
    for t in (t * 2 for t in x):
        total += t
    return total, t


def what_the_body_changes(x: Any) -> Any:
    total, k = 0.0, 1.0
    for v in (t * k for t in x):
        k *= 0.99
        if v < 0:
            continue
        total += v
    return total, k


def of_two(x: Any) -> Any:
    total = 0.0
    for v in (p * q for p in x[:5] for q in x):
        if v < 0:
            continue
        total += v
    else:
        total += 1
    return total


def sums(x: Any) -> Any:
    total = 0.0
    for v in (sum(u * t for u in x[:3]) for t in x):
        total += v
    return total


def shadowed(x: Any) -> Any:
    def square(x: Any) -> Any:
        return x * x

    total = 0.0
    for v in (square(x) for x in x):
        total += v
    return total, x.sum()


@pytest.mark.parametrize(
    "f", [summed, filtered, its_own_variable, what_the_body_changes, of_two, sums, shadowed])
def test_loops_of_the_graph(f: Callable[[Any], Any]) -> None:
    compiled = fusec.jit(f)
    for x in (X, X[:7], X[3:4]):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12)
        assert [type(v) for v in np.atleast_1d(compiled(x))] == [
            type(v) for v in np.atleast_1d(f(x))]
    assert compiled.traces[0].control


def test_loops_that_python_leaves_early() -> None:
    def two_left_by_one_break(x: Any) -> Any:
        count = 0
        for v in (p * q for p in range(3) for q in range(p)):
            count += v
            if count > 1:
                break
        return x + count

    def of_none(x: Any) -> Any:
        for v in (t for t in x[:0]):
            x = x + v
        return x

    def in_a_class(x: Any) -> Any:
        class Made:
            w = 3
            total = 0
            for q in (w for w in range(4)):
                total += q

        return x * Made.total * Made.w

    def ends_itself(x: Any) -> Any:
        items = iter([1.0])
        total = 0.0
        for v in (next(items) * k for k in range(2)):
            total += v
        return x + total

    for f in (two_left_by_one_break, of_none, in_a_class):
        np.testing.assert_array_equal(fusec.jit(f)(X[:3]), f(X[:3]))
    for f in (ends_itself, fusec.jit(ends_itself)):
        with pytest.raises(RuntimeError, match="generator raised StopIteration"):
            f(X[:3])
