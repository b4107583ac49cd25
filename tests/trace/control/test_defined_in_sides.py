"""Functions that the sides of a branch define under one name, and that what follows calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

VECTORS = [np.array([1.0, 2.0, 3.0]), np.array([-5.0, 1.0, 2.0]), np.array([0.5, -0.5, 0.0])]


def of_two(x: Any) -> Any:
    if x.sum() > 0:
        def scaled(v: Any) -> Any:
            return v * 2
    else:
        def scaled(v: Any) -> Any:
            return v + 1
    y = scaled(x)
    return y, scaled(y[0])


def of_three(x: Any) -> Any:
    shift = x.max()
    if x[0] > 0.7:
        def moved(v: Any) -> Any:
            return v - shift
    elif x[0] < 0:
        def moved(v: Any) -> Any:
            return np.abs(v)
    else:
        def moved(v: Any) -> Any:
            total = 0.0
            for z in v:
                total += z * shift
            return v + total
    shift = shift + 1
    return moved(x).sum()


def with_a_default(x: Any) -> Any:
    if x.sum() > 0:
        def f(v: Any) -> Any:
            return v
    elif x.sum() < 0:
        def f(v: Any) -> Any:
            return -v
    else:
        return x * 7
    for _ in range(3):
        x = f(x) + 1
    if x[1] > 4:
        return x * f(x)
    return x


def only_one_side(x: Any) -> Any:
    def f(v: Any) -> Any:
        return v * 3
    if x.sum() > 0:
        def f(v: Any) -> Any:  # type: ignore[no-redef]
            return v * 2
    else:
        def f(v: Any) -> Any:  # type: ignore[no-redef]
            return v * 5
    return f(x)


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for v in x:
        if v > 1:
            def g(y: Any) -> Any:
                return y * 2
        else:
            def g(y: Any) -> Any:
                return y + 10
        total = total + g(v)
        if total > 30:
            break
    return total


def in_a_while(x: Any) -> Any:
    total, k = 0.0, 0
    while k < len(x):
        k += 1
        if x[k - 1] < 0:
            continue
        if x[k - 1] > 1:
            def g(y: Any) -> Any:
                return y * 2
        else:
            def g(y: Any) -> Any:
                return y + 10
        total += g(x[k - 1])
    return total


def in_nested_branches(x: Any) -> Any:
    if x[0] > 1:
        if x[1] > 1:
            def g(y: Any) -> Any:
                return y * 2
        else:
            def g(y: Any) -> Any:
                return y + 10
    else:
        def g(y: Any) -> Any:
            return y - 1
    return g(x) + g(2 * x)


@pytest.mark.parametrize("f", [of_two, of_three, with_a_default, only_one_side, in_a_loop,
                               in_a_while, in_nested_branches])
def test_the_one_that_data_decide_is_called(f: Any) -> None:
    jitted = fusec.jit(f)
    for x in VECTORS:
        got, want = jitted(x.copy()), f(x.copy())
        for a, b in zip(np.atleast_1d(got) if not isinstance(got, tuple) else got,
                        np.atleast_1d(want) if not isinstance(want, tuple) else want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    assert jitted.trace_count == 1


def test_exceptions_of_the_rest() -> None:
    def f(x: Any, k: Any) -> Any:
        if x.sum() > 0:
            def g(v: Any) -> Any:
                return v * 2
        else:
            def g(v: Any) -> Any:
                return v + 1
        y = g(x)
        return y[k]

    jitted = fusec.jit(f)
    x = VECTORS[0]
    assert jitted(x, 1) == f(x, 1)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        jitted(x, 3)
