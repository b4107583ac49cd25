"""``while`` loops whose tests Python knows: written parts make them loops of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from tests.programs.spectral import haar


def loops(jitted: Any, *args: Any) -> list[bool]:
    """The loops of a call's plan: whether each is native."""
    call_plan = jitted.concrete(*args).build.call_plan
    return [s.run.is_native for s in call_plan.externs if s.run is not None]


def test_haars_transform_is_one_trace_for_all_sizes() -> None:
    jitted = fusec.jit(haar)
    for n in (8, 64, 32, 512, 100, 4096):
        x = np.random.default_rng(n).standard_normal(n)
        if n != 100:  # of odd halves NumPy says that shapes differ
            for found, expected in zip(jitted(x), haar(x), strict=True):
                np.testing.assert_array_equal(found, expected)
            assert loops(jitted, x) == [True, True]
    assert jitted.trace_count == 1


def test_what_numpy_raises_in_an_iteration() -> None:
    jitted = fusec.jit(haar)
    x = np.ones(100)
    with pytest.raises(ValueError, match="broadcast"):
        haar(x)
    with pytest.raises(ValueError, match="broadcast"):
        jitted(x)


def doubled(x: Any) -> Any:
    n, y = 1, x.copy()
    while n < len(y):
        y[n: 2 * n] += y[:n]
        n *= 2
    return y, n


def with_an_exit(x: Any) -> Any:
    n, y = len(x), x.copy()
    while n > 1:
        y[: n // 2] = y[: n // 2] + y[n // 2: 2 * (n // 2)]
        n //= 2
        if y[0] > 10.0:
            break
    else:
        y[0] = -1.0
    return y, n


def with_a_list(x: Any) -> Any:
    n, y, sums = len(x), x.copy(), []
    while n > 1:
        n //= 2
        y[:n] = y[:n] * 2.0
        sums.append(y[0])
    return y, sums


def nested(x: Any) -> Any:
    n, y = len(x), x.copy()
    while n > 1:
        m = n
        while m > 1:
            y[:m] = y[:m] + 0.5
            m //= 2
        n //= 2
    return y


def two_arrays(x: Any) -> Any:
    y, z, n = x.copy(), np.zeros_like(x), len(x)
    while n > 1:
        n = n // 2
        z[:n] = y[n: 2 * n]
        y, z = z, y
    return y, z


@pytest.mark.parametrize("function", [doubled, with_an_exit, with_a_list, nested, two_arrays])
def test_values_are_pythons(function) -> None:
    jitted = fusec.jit(function)
    for n in (16, 4, 64, 32, 2, 1, 256):
        for scale in (0.1, 3.0):
            x = np.random.default_rng(n).standard_normal(n) * scale
            found, expected = jitted(x), function(x)
            found, expected = (r if isinstance(r, tuple) else (r,) for r in (found, expected))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
                assert type(a) is type(b)


def test_iterations_that_fuse_are_unrolled() -> None:
    @fusec.jit
    def halved(x):
        n = 12
        while n > 0:
            x = np.sin(x) * 0.5
            n -= 1
        return x

    x = np.linspace(0.0, 1.0, 9)
    assert loops(halved, x) == []
    assert len(halved.concrete(x).kernels) == 1


def search(x, graph):
    todo, seen, waiting = {0}, set(), {"a": 1.0}
    while todo:
        k = todo.pop()
        seen.add(k)
        x = x * 1.5
        todo |= {j for j in graph[k] if j not in seen}
    while waiting:
        x = x + waiting.popitem()[1]
    return x


def test_while_there_is_something_in_a_set_or_dict() -> None:
    """It was an "unsupported operand: set"."""
    graph = {0: [1, 2], 1: [2], 2: []}
    assert fusec.jit(search)(2.0, graph) == search(2.0, graph)
