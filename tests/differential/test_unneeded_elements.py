"""An index out of range raises NumPy's ``IndexError`` though nobody needs the element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import run

import fusec

X = np.arange(5.0)
THERE, NOT_THERE = np.array([1, -3, 3]), np.array([1, 2, 7])


def compared(x, k):
    if x[k] > 1.0:
        pass
    return x + 1


def statement(x, k):
    x[k]
    return x + 1


def bound(x, k):
    y = x[k]  # noqa: F841
    return x + 1


def written(x, k):
    y = x.copy()
    y[k] = 1
    return x + 1


def row(x, k):
    a = np.outer(x, x)
    shown = a[k]
    return x + 1, shown.shape


def on_one_side(x, k):
    y = 0.0
    if x[0] == 0:
        y = x[k]
    z = y * 2  # noqa: F841
    return x + 1


def conditional(x, k):
    y = x[k] if x[0] == 0 else 0.0
    z = y * 2  # noqa: F841
    return x + 1


def in_a_loop(x, k):
    t = 0.0
    for i in range(30):
        x[k]
        t += i
    return t


def in_nests(x, k):
    t = 0.0
    for i in range(30):
        if t < 300:
            x[i % 2]
        else:
            for _ in range(i):
                x[k]
        t += i
    return t


def of_part(x, k):
    y, t = x[x > 1], 0.0
    for i in range(30):
        y[k]
        t += i
    y[k]
    return t


ELEMENTS = (compared, statement, bound, written, row, on_one_side, conditional, in_a_loop, in_nests,
            of_part)


def agrees(f: Callable[..., Any], *args: Any) -> fusec.Function:
    """The same outcome, the same text; the second call retraces nothing."""
    jitted, want = fusec.jit(f), run(f, args)
    for _ in range(2):
        got = run(jitted, args)
        assert type(want.error) is type(got.error) or isinstance(got.error, type(want.error))
        assert str(got.error).partition("\n")[0] == str(want.error)
        np.testing.assert_equal(got.leaves, want.leaves)
    assert jitted.trace_count == 1
    return jitted


@pytest.mark.parametrize("f", ELEMENTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("k", [1, -1, 5, -6])
def test_elements(f: Callable[..., Any], k: int) -> None:
    agrees(f, X, np.int64(k))


def test_a_side_that_is_not_taken_checks_nothing() -> None:
    assert agrees(on_one_side, X + 1, np.int64(9))(X + 1, np.int64(9)).sum() == 20


def gathered(x, i):
    x[i]
    return x + 1


def scattered(x, i):
    y = x.copy()
    y[i] = 1
    return x + 1


def gathered_in_a_loop(x, i):
    t = 0.0
    for k in range(30):
        x[i]
        t += k
    return t


def taken(x, i):
    np.take(x, i)
    return x + 1


@pytest.mark.parametrize("f", [gathered, scattered, gathered_in_a_loop, taken])
@pytest.mark.parametrize("i", [THERE, NOT_THERE, -NOT_THERE, NOT_THERE.astype(np.uint8),
                               NOT_THERE.reshape(1, 3)], ids=str)
def test_arrays_of_indices(f: Callable[..., Any], i: np.ndarray) -> None:
    agrees(f, X, i)


def sums(x, n):
    s = t = 0.0
    for i in range(n):
        s += x[i]
        t += i
    return s, t


def one_of_two(x, n):
    _, t = sums(x, n)
    return t


def unused_sum(x, n):
    s = 0.0
    for i in range(n):
        s += x[i]
    return x + 1


def none_of_two(x, n):
    sums(x, n)
    return x + 1


@pytest.mark.parametrize("f", [one_of_two, unused_sum, none_of_two])
@pytest.mark.parametrize("n", [2, 5, 30])
def test_results_of_loops(f: Callable[..., Any], n: int) -> None:
    agrees(f, X, np.int64(n))


@pytest.mark.one_device
def test_loops_that_check_alone_are_native() -> None:
    for f, k in ((in_a_loop, np.int64(2)), (gathered_in_a_loop, THERE)):
        jitted = fusec.jit(f)
        jitted(X, k)
        (control,) = jitted.traces[-1].control
        assert control.is_native, control


def test_what_is_needed_is_checked_once() -> None:
    def f(x, k):
        t = 0.0
        for i in range(30):
            t += x[k + i - i]
        return t

    jitted = fusec.jit(f)
    jitted(X, np.int64(1))
    assert "BoundsCheck" not in str(jitted.traces[-1].graph)


@pytest.mark.parametrize("f", [statement, written, in_a_loop], ids=lambda f: f.__name__)
def test_unchecked(f: Callable[..., Any]) -> None:
    jitted = fusec.jit(f, check_indices=False)
    jitted(X, np.int64(1))
    assert "BoundsCheck" in str(jitted.traces[-1].graph)
    assert "BoundsCheck" not in str(jitted.traces[-1].optimized_graph)
