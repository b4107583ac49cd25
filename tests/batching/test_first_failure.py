"""Where several lanes fail, the exception is the plain loop's: that of the first lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(5.0)


def two_picks(x: Any, i: Any, j: Any) -> Any:
    y = x[i] * 2
    return y + x[j]


def pick_after_a_loop(x: Any, i: Any, n: Any) -> Any:
    total = 0.0
    while n > 0:
        n, total = n - 1, total + 1.0
        if total > 3:
            raise ValueError("too far")
    return x[i] + total


def three_picks(x: Any, i: Any, j: Any) -> Any:
    return x[i] + x[j] + x[i - j]


CASES: list[tuple[Callable[..., Any], list[int], list[int]]] = [
    (two_picks, [0, 1, 2, 9], [0, 8, 1, 1]),
    (two_picks, [0, 1, 2, 9], [7, 8, 1, 1]),
    (two_picks, [0, 9, 2, 9], [0, 8, 1, 7]),
    (pick_after_a_loop, [0, 7, 2, 1], [0, 1, 9, 1]),
    (pick_after_a_loop, [0, 1, 7, 1], [0, 9, 1, 1]),
    (three_picks, [0, 1, 2, 3, 9, -2], [0, 3, 8, 0, 0, 4]),
]


def of_the_plain_loop(f: Callable[..., Any], *lanes: Any) -> tuple[int, Exception]:
    for lane, given in enumerate(zip(*lanes, strict=True)):
        try:
            f(X, *given)
        except Exception as error:
            return lane, error
    raise AssertionError


@pytest.mark.parametrize("case", CASES)
def test_the_first_lane_raises(case: Any) -> None:
    f, *lists = case
    lanes = [np.array(x) for x in lists]
    number, want = of_the_plain_loop(f, *lanes)
    mapped = fusec.vmap(f, (None, 0, 0))
    for _ in range(2):  # a first call, and one of a known plan
        with pytest.raises(type(want), match=str(want)) as caught:
            mapped(X, *lanes)
        assert f"in lane {number}" in caught.value.__notes__
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_along_other_axes_and_by_name() -> None:
    def f(x: Any, *, places: Any) -> Any:
        return X[places["i"]] + x[0] + X[places["j"]]

    mapped = fusec.vmap(f, in_axes=1)
    places = {"i": np.array([0, 1, 2, 9]), "j": np.array([0, 1, 6, 1])}
    with pytest.raises(IndexError, match="index 6") as caught:
        mapped(np.ones((2, 4)), places=places)
    assert "in lane 2" in caught.value.__notes__


def test_arguments_keep_what_they_had() -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        x[:] = x[i] + x[j]

    x = np.arange(12.0).reshape(4, 3)
    before = x.copy()
    with pytest.raises(IndexError, match="index 5") as caught:
        fusec.vmap(f)(x, np.array([0, 1, 9, 1]), np.array([0, 5, 0, 0]))
    assert "in lane 1" in caught.value.__notes__
    np.testing.assert_array_equal(x, before)
