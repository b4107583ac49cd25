"""``sorted``, ``list.sort``, ``max`` and ``min`` of lists that data orders, by themselves and by
keys: as Python does it with equal items, signs of zeros and types; a first call does not grow."""
# ruff: noqa: B905, C414

from __future__ import annotations

import heapq
import operator
import re
import time
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError


def ordered(xs):
    n, ints = len(xs), [int(v * 4) for v in xs]  # many are equal
    pairs = [(k, v) for k, v in zip(ints, xs)]
    copied = list(xs)
    copied.sort(key=abs, reverse=True)
    return (
        sorted(xs), sorted(xs, reverse=True), sorted(ints), copied,
        sorted(xs, key=lambda v: int(v * 4)), sorted(xs, key=lambda v: int(v * 4), reverse=True),
        sorted(range(n), key=lambda i: ints[i]),
        sorted(range(n), key=ints.__getitem__, reverse=True),
        sorted(pairs), sorted(pairs, key=operator.itemgetter(0)),
        sorted(((v > 0.1, -i) for i, v in enumerate(xs)), reverse=True),
        sorted(pairs, key=lambda p: (-p[0], p[1])),
        heapq.nsmallest(3, xs, key=abs), heapq.nlargest(3, pairs),
        sorted(tuple(xs), key=lambda v: 1),
    )


def best(xs):
    n, ints = len(xs), [int(v * 4) for v in xs]
    pairs = [(k, v) for k, v in zip(ints, xs)]
    return (
        max(xs, key=lambda v: int(v * 4)), min(xs, key=lambda v: int(v * 4)), max(xs, key=abs),
        max(pairs), min(pairs), max(pairs, key=lambda p: p[0]), min(pairs, key=lambda p: -p[0]),
        max(range(n), key=lambda i: ints[i]), min(range(n), key=xs.__getitem__),
        max(enumerate(xs), key=lambda p: p[1]), min(zip(xs, ints)), max(tuple(xs)),
        max(ints, default=3), min((v * v for v in xs), key=lambda v: -v),
    )


def assert_same(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    if isinstance(got, (list, tuple)):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    else:
        assert repr(got) == repr(expected)


def numbers(n: int) -> list[float]:
    return np.random.default_rng(n).normal(size=n).round(1).tolist()  # with -0.0, and equal ones


@pytest.mark.parametrize(("n", "kind"), [(1, list), (5, list), (17, np.array), (90, list)])
def test_as_python_does(n: int, kind: Any) -> None:
    xs = kind(numbers(n))
    assert_same(fusec.jit(ordered)(xs), ordered(xs))
    assert_same(fusec.jit(best)(xs), best(xs))


def test_none() -> None:
    assert fusec.jit(ordered)([]) == ordered([])
    with pytest.raises(ValueError, match="empty"):
        fusec.jit(best)([])


def test_a_first_call_does_not_grow() -> None:
    def program(xs):
        return max(xs, key=lambda v: -abs(v - 0.3)), sorted(xs, key=lambda v: abs(v - 0.3))

    fusec.jit(program)(numbers(100))
    xs, begun = np.random.default_rng(1).normal(size=20_000).tolist(), time.process_time()
    assert fusec.jit(program)(xs) == program(xs)
    assert time.process_time() - begun < 2.0  # 36 s for 1,000


def test_nan_is_refused() -> None:
    compiled = fusec.jit(lambda xs: sorted(xs, key=lambda v: -v))
    assert compiled(numbers(70)) == sorted(numbers(70), reverse=True)
    with pytest.raises(FusecError, match="NaN"):
        compiled([*numbers(69), float("nan")])


def test_keys_in_order_and_raising() -> None:
    def program(xs):
        return max(xs, key=lambda v: 1.0 / v)

    compiled, xs = fusec.jit(program), [v + 20.0 for v in numbers(70)]
    assert compiled(xs) == program(xs)
    with pytest.raises(ZeroDivisionError):
        compiled([*xs[:-1], 0.0])


def test_rows_are_shown() -> None:
    def program(x):
        rows = sorted([*x], key=lambda r: r[0])
        return np.array(rows), rows[0] * 2

    x = np.random.default_rng(3).normal(size=(20, 3))
    for a, b in zip(fusec.jit(program)(x), program(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradient() -> None:
    def program(x):
        ys = sorted([v * v for v in x], key=lambda v: -v)
        return ys[0] * 3 + ys[1] + max([v * 2 for v in x], key=lambda v: -v)

    x = np.random.default_rng(3).normal(size=40)
    expected, order = np.zeros(40), np.argsort(-x * x, kind="stable")
    expected[order[0]] += 6 * x[order[0]]
    expected[order[1]] += 2 * x[order[1]]
    expected[np.argmin(x)] += 2
    np.testing.assert_allclose(fusec.grad(program)(x), expected)


def test_of_none_that_data_selects() -> None:
    def greatest(x: Any) -> Any:
        return max(x[x > 100])

    jitted = fusec.jit(greatest)
    assert jitted(np.array([1.0, 300.0, 200.0])) == 300.0
    with pytest.raises(ValueError, match="empty") as wanted:
        greatest(np.zeros(3))
    with pytest.raises(ValueError, match=re.escape(str(wanted.value))):
        jitted(np.zeros(3))


def test_an_order_that_data_decides_is_refused() -> None:
    with pytest.raises(FusecError, match="reverse="):
        fusec.jit(lambda xs, v: sorted(xs, reverse=v > 0))([2.0, 1.0, 3.0], np.float64(1.0))


def test_what_a_branch_that_is_not_taken_would_raise() -> None:
    def greatest(x: Any) -> Any:
        return max(x) if (x > 0).any() else 0.0

    def ordered_or_not(x: Any) -> Any:
        return sorted([1, "a"]) if x > 0 else x

    assert fusec.jit(greatest)(np.zeros(0)) == 0.0
    jitted = fusec.jit(ordered_or_not)
    assert jitted(np.float64(-1.0)) == -1.0
    with pytest.raises(TypeError, match="not supported between"):
        jitted(np.float64(1.0))
