"""Arrays that are one of several, as a branch or loop decides, and are then written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def one_of_two(x, y):
    a, b = np.zeros(3), np.ones(3)
    w = a if x[0] > 0 else b
    w[0] = 5
    w[1:] += y[1:]
    return a, b, w


def one_or_a_copy(x, y):
    w = y if x[0] > 0 else y.copy()
    w[0] = 5
    return w


def an_argument_or_another(x, y):
    w = x if y[0] > 0 else y
    w[1:] *= 2
    return w.sum()


def a_view_chosen_in_a_branch(x, y):
    M = np.zeros((3, 3))
    row = M[0] if x[0] > 0 else M[:, 1]
    row[:] = y
    M[0, 1] = 7
    return M, row * 2


def written_through_the_base_and_read_through_the_choice(x, y):
    a, b = np.zeros(3), np.ones(3)
    w = a if x[0] > 0 else b
    a[1], b[2] = 9, 8
    return w + y, a, b


def one_of_three(x, y):
    a, b = np.zeros(3), np.ones(3)
    if x[0] > 0:
        w = a
    elif x[1] > 0:
        w = b
    else:
        w = y
    w[0] = 5
    w += 1
    return a, b, w


def fresh_or_older_on_three_ways(x, y):
    u = y * 2
    v = u
    if x[0] > 0:
        u = u + 1
    elif x[1] > 0:
        u = u - 1
    u[0] = 5
    return u, v


def written_in_a_loop(x, y):
    a, b = np.zeros(3), np.ones(3)
    w = a if x[0] > 0 else b
    for i in range(30):
        w[i % 3] += y[i % 3] * i
    return a, b


def chosen_anew_in_each_iteration(x, y):
    a, b = np.zeros(3), np.ones(3)
    for i in range(30):
        w = a if x[i % 3] > 0 else b
        w[i % 3] += 1.0
    return a, b


def in_a_branch_again(x, y):
    a, b = np.zeros(3), np.ones(3)
    w = a if x[0] > 0 else b
    if y[0] > 0:
        w[1] = 4
        w = y
    w[2] = 3
    return a, b, w


def swapped_in_a_loop(x, y):
    for _ in range(21):
        y[1:-1] = x[:-2] + x[2:]
        x, y = y, x
    return x


def one_array_on_one_side_only(x, y):
    if x[0] > 0:
        u = v = x * 2
    else:
        u, v = x * 3, y * 4
    u[0] = 7
    return u, v


def an_array_and_its_part_on_one_side(x, y):
    if x[0] > 0:
        v = x * 2
        u = v[:2]
    else:
        u, v = y[1:], x * 4
    u[0] = 7
    v[1] = u[0] + 1
    return u, v, u[::-1]


CASES = (
    one_array_on_one_side_only, an_array_and_its_part_on_one_side,
    one_of_two, one_or_a_copy, an_argument_or_another, a_view_chosen_in_a_branch,
    written_through_the_base_and_read_through_the_choice, one_of_three,
    fresh_or_older_on_three_ways, written_in_a_loop, chosen_anew_in_each_iteration,
    in_a_branch_again, swapped_in_a_loop,
)
SIGNS = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_as_in_numpy(function: Callable[..., Any], signs: tuple[float, float]) -> None:
    first = signs[0] * np.array([1.0, signs[1] * 2, 3.0])
    second = signs[1] * np.array([0.5, -2.0, signs[0] * 4])
    compiled = fusec.jit(function)
    for _ in range(2):
        mine, numpys = (first.copy(), second.copy()), (first.copy(), second.copy())
        got, want = compiled(*mine), function(*numpys)
        for a, b in zip((*_parts(got), *mine), (*_parts(want), *numpys), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def _parts(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else (x,)


def parts_of_one_array_on_one_side(x):
    if x[0] > 0:
        w = x * 2
        u, v = w[:2], w[1:]
    else:
        u, v = x[:2] * 3, x[1:] * 4
    u[0] = 7
    return u, v


def bound_in_a_loop_and_written_after(x):
    a, b = np.zeros(3), np.ones(3)
    w = a
    for i in range(30):
        if x[i % 3] > 0:
            w = b
    w[0] = 5
    return a, b


@pytest.mark.parametrize("function", [
    parts_of_one_array_on_one_side, bound_in_a_loop_and_written_after])
def test_what_the_graph_cannot_say_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(fusec.UnsupportedError, match="as a branch or loop decides"):
        fusec.jit(function)(np.ones(3))


def test_a_loop_that_may_have_bound_a_name_to_what_is_written_later_is_refused() -> None:
    @fusec.jit
    def stale(x):
        a, b = x * 0, x + 1
        w = a
        for i in range(30):
            if x[i % 3] > 0:
                w = b
        b[0] = 5
        return w + 0

    with pytest.raises(fusec.UnsupportedError, match="written since"):
        stale(np.ones(3))


@pytest.mark.parametrize("level", [-1.0, 1.0])
def test_arrays_chosen_a_hundred_times_in_a_row(level: float) -> None:
    """Seed c806065: each choice doubled the ways to the two arrays, and all were walked."""

    def exchanged(x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        for i in range(1, 11):
            for _j in range(10):
                if t > i:
                    continue
                x, y = y, x
            x = x if t < i else y
        return x * 2 + y

    args = np.arange(3.0), np.ones(3), level
    np.testing.assert_array_equal(fusec.jit(exchanged)(*args), exchanged(*args))


def row_at_an_index(x: np.ndarray, k: np.ndarray, t: float) -> np.ndarray:
    v = x[k[0]] if t > 0 else x[0]
    x += 1
    return v * 1


def one_new_array_of_two_names(x: np.ndarray, k: np.ndarray, t: float) -> np.ndarray:
    if t > 0:
        v, w = x[0], x[1]
    else:
        v = w = np.zeros(3) + k[0]
    x += 1
    return v + w


@pytest.mark.parametrize("level", [-1.0, 1.0])
@pytest.mark.parametrize("program", [row_at_an_index, one_new_array_of_two_names])
def test_what_may_be_a_view_is_not_read_as_it_was_before_a_write(
    program: Callable[..., Any], level: float
) -> None:
    def arguments() -> list[Any]:
        return [np.arange(12.0).reshape(4, 3), np.array([2]), level]

    compiled = fusec.jit(program)
    try:
        found = compiled(*arguments())
    except fusec.UnsupportedError as refusal:
        assert "was written since" in str(refusal)
    else:
        np.testing.assert_array_equal(found, program(*arguments()))
