"""Library calls whose results nothing reads raise NumPy's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

ONES = np.ones((2, 2))


def inverse(x: Any) -> Any:
    np.linalg.inv(x)
    return x * 2


def assigned(x: Any) -> Any:
    root = np.linalg.cholesky(-x)  # noqa: F841
    return x * 2


def negative_counts(x: Any) -> Any:
    np.bincount(x.astype(int).ravel() - 5)
    return x


def far_choice(x: Any) -> Any:
    np.choose(x.astype(int) + 7, [x, x])
    return x


def far_position(x: Any) -> Any:
    np.ravel_multi_index((x.astype(int) + 9, x.astype(int)), (3, 3))
    return x


def far_quantile(x: Any) -> Any:
    np.quantile(x, x[0, 0] + 3)
    return x


def greatest_of_none(x: Any) -> Any:
    x[x > 100].max()
    return x


def place_in_none(x: Any) -> Any:
    for k in range(20):
        x[x < 20 - k].argmin()
    return x


def written_and_dropped(x: Any) -> Any:
    other = x.copy()
    np.put(other, x.astype(int) + 9, 1.0)
    return x


def in_a_loop(x: Any) -> Any:
    for i in range(30):
        np.linalg.inv(x + np.eye(2) * (20 - i))
    return x


def loop_that_nothing_reads(x: Any) -> Any:
    y = 0.0
    for i in range(30):
        y = y + np.linalg.inv(x + np.eye(2) * (20 - i))[0, 0]
    return x


def in_a_branch(x: Any) -> Any:
    if x[0, 0] > 0:
        np.linalg.solve(x, x)
    return x


@fusec.jit
def _first(x: Any) -> Any:
    return np.linalg.inv(x)[0]


def in_a_jitted_function(x: Any) -> Any:
    _first(x + np.eye(2))
    _first(x)
    return x


@pytest.mark.parametrize("program", [
    inverse, assigned, negative_counts, far_choice, far_position, far_quantile,
    greatest_of_none, place_in_none, written_and_dropped, in_a_loop, loop_that_nothing_reads,
    in_a_branch, in_a_jitted_function,
], ids=lambda f: f.__name__)
def test_raises_what_numpy_raises(program: Callable[..., Any]) -> None:
    with pytest.raises(Exception, match=r".+") as wanted:
        program(ONES.copy())
    with pytest.raises(type(wanted.value)) as found:
        fusec.jit(program)(ONES.copy())
    assert str(wanted.value) in str(found.value)


def test_other_values_pass() -> None:
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    for program in (inverse, in_a_branch, in_a_jitted_function):
        np.testing.assert_array_equal(fusec.jit(program)(x), program(x))


def is_positive_definite(x: Any) -> Any:
    try:
        np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return False
    return True


def test_what_an_unread_call_raises_is_not_caught_in_silence() -> None:
    jitted = fusec.jit(is_positive_definite)
    assert jitted(np.eye(2)) is True
    with pytest.raises(UnsupportedError, match="catching LinAlgError"):
        jitted(-np.eye(2))


def test_gradients_and_reads_keep_nothing_twice() -> None:
    def solved(a: Any, b: Any) -> Any:
        np.linalg.inv(a)
        return np.linalg.solve(a, b).sum() + np.linalg.inv(a)[0, 0]

    a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.ones(2)
    jitted = fusec.jit(solved)
    assert jitted(a, b) == solved(a, b)
    assert str(jitted.traces[-1].optimized_graph).count("LinalgInv(") == 1
    assert fusec.grad(solved)(a, b).shape == (2, 2)
