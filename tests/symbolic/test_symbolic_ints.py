"""Python's ints that a trace needs are symbols, as sizes are: one trace for all values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

VALUES = (20, 33, 41, 58, 90)
X = np.random.default_rng(0).normal(size=100)


def table(n: int) -> Any:
    y = np.zeros((n, 3))
    for k in range(n):
        y[k] = k / n
    return y


def window(x: Any, n: int) -> Any:
    return x[n:n + 7] * n, x[-n:], x[:n].sum(), n, n / 7, 2**n if n < 3 else n


def doubled(x: Any, n: int) -> Any:
    for k in range(n):
        x = np.tanh(x) + np.arange(n)[k]
    return x


def beside_sizes(x: Any, n: int) -> Any:
    return x.reshape(-1, 2)[: n // 2] if len(x) == 2 * n else x[:n]


def grid(n: int) -> Any:
    return np.linspace(0, 1, n), np.arange(n) * 2, np.eye(n), np.ones((n, 2)).T


PROGRAMS: list[tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = [
    (table, lambda n: (n,)), (window, lambda n: (X, n)), (doubled, lambda n: (X[:5], n)),
    (beside_sizes, lambda n: (np.arange(2.0 * n), n)), (grid, lambda n: (n,)),
]


def check_same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, tuple):
        for a, b in zip(got, want, strict=True):
            check_same(a, b)
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=lambda f: f.__name__)
def test_one_trace_serves_five_values(
    function: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]],
) -> None:
    jitted = fusec.jit(function)
    for n in (*VALUES, *VALUES[::-1]):
        check_same(jitted(*arguments(n)), function(*arguments(n)))
    assert jitted.trace_count == 1


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 1 << 50])
def test_small_large_and_negative_values_are_right(n: int) -> None:
    def cut(x: Any, n: int) -> Any:
        return x[n:], n % 7, x[:n].shape

    jitted = fusec.jit(cut)
    for k in (30, 40, n, 50, n):
        check_same(jitted(X, k), cut(X, k))


def test_an_int_that_python_looks_at_has_a_trace_for_each_value() -> None:
    words = {20: 2, 30: 3, 40: 4}
    jitted = fusec.jit(lambda x, n: x[: words[n]])
    for n in words:
        np.testing.assert_array_equal(jitted(X, n), X[: words[n]])
    assert jitted.trace_count == 3


def test_the_error_of_one_value_is_its_own() -> None:
    def of_two_rows(x: Any, n: int) -> Any:
        return x.reshape(n, -1)

    jitted = fusec.jit(of_two_rows)
    for n in (10, 20, 25, 50):
        check_same(jitted(X, n), of_two_rows(X, n))
    with pytest.raises(ValueError, match=r"cannot reshape array of size 100 into shape \(30"):
        jitted(X, 30)
    check_same(jitted(X, 2), of_two_rows(X, 2))


def test_an_int_is_apart_from_sizes_that_it_equals() -> None:
    jitted = fusec.jit(lambda x, n: x + np.arange(n)[: len(x)])
    for size, n in ((20, 40), (30, 60), (30, 30), (41, 58), (20, 20)):
        x = np.ones(size)
        np.testing.assert_array_equal(jitted(x, n), x + np.arange(n)[:size])
    assert jitted.trace_count <= 3  # one where both are equal


def test_explain_names_the_int() -> None:
    jitted = fusec.jit(table)
    for n in VALUES[:3]:
        jitted(n)
    assert "traced once for sizes n=s0" in str(fusec.explain(jitted, VALUES[3]))
    assert jitted.traces[0].reason == "other sizes, of a trace that serves them"


def test_numpy_integers_are_known_by_value() -> None:
    jitted = fusec.jit(table)
    for n in VALUES:
        check_same(jitted(np.int64(n)), table(np.int64(n)))


STRIDED: list[Callable[[int], np.ndarray]] = [
    lambda n: np.arange(3.0 * n)[::3], lambda n: np.arange(2.0 * n)[::-2],
    lambda n: np.arange(3.0 * n * n).reshape(n, 3 * n)[:, 1:n],
    lambda n: np.arange(3.0 * n * n).reshape(n, 3 * n)[::-1, :5].T,
    lambda n: np.broadcast_to(np.arange(float(n)), (n + 1, n)),
    lambda n: np.zeros(n, np.dtype([("a", "i1"), ("b", "f8")]))["b"],
]


@pytest.mark.parametrize("argument", STRIDED)
def test_strides_that_do_not_follow_from_sizes(argument: Callable[[int], np.ndarray]) -> None:
    def work(x: Any) -> Any:
        return x * 2 + x.sum(), x[1:], x.copy(), x.T, np.sort(x), x.reshape(-1), x.mean(axis=0)

    jitted = fusec.jit(work)
    for n in VALUES:
        check_same(jitted(argument(n)), work(argument(n)))
    assert jitted.trace_count == 1


def test_writing_through_strides() -> None:
    def settle(x: Any) -> None:
        x[1:] += x[:-1]
        x *= len(x)

    jitted = fusec.jit(settle)
    for n in VALUES:
        memory = np.arange(2.0 * n * n).reshape(n, -1)
        expected = memory.copy()
        jitted(memory[:, 3:n])
        settle(expected[:, 3:n])
        np.testing.assert_allclose(memory, expected)
    assert jitted.trace_count == 1


def every_nth(x: Any, n: int) -> Any:
    """A check of the run comes before a value that must be known while tracing."""
    ordered = np.take_along_axis(x, np.argsort(x), 0)
    return ordered[::n]


def test_an_int_that_must_be_known_after_a_check_of_the_run() -> None:
    jitted = fusec.jit(every_nth)
    for n in (4, 2, 8, 3):
        x = np.arange(9.0)[::-1].copy()
        np.testing.assert_array_equal(jitted(x, n), every_nth(x, n))


def moved_axis(x: Any, n: int) -> Any:
    """NumPy swallows the refusal of the int, and says that it is not iterable."""
    np.take(x, [n])
    return np.moveaxis(np.outer(x, x[:3]), 0, n), np.unstack(np.outer(x, x), axis=n)[0]


def test_an_axis_that_must_be_known() -> None:
    jitted, x = fusec.jit(moved_axis), np.arange(9.0)
    for n in (1, 0, 1, -1, 0):
        for found, wanted in zip(jitted(x, n), moved_axis(x, n), strict=True):
            np.testing.assert_array_equal(found, wanted)
    with pytest.raises(np.exceptions.AxisError, match="destination: axis 5"):
        jitted(x, 5)


def test_a_value_of_one_is_not_the_answer_that_there_is_one() -> None:
    """True is 1.0: where a power was pinned at 1.0, that it raises nothing had been asked."""
    def f(x: np.ndarray) -> np.ndarray:
        return np.append(1.0, 2.0 ** (len(x) % 3))

    compiled = fusec.jit(f)
    for n in (2, 9, 7, 8, 3):
        np.testing.assert_array_equal(compiled(np.zeros(n)), f(np.zeros(n)))
