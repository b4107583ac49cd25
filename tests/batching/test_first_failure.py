"""Where several lanes fail, the exception is the plain loop's: that of the first lane."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.gradients.lanes.first_failure import LaneFunction

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


SINGULAR, NEGATIVE, NOT_FINITE = np.zeros((2, 2)), -np.eye(2), np.full((2, 2), np.nan)
LIBRARY: dict[str, tuple[Any, Any]] = {
    "inv": (np.linalg.inv, SINGULAR), "cholesky": (np.linalg.cholesky, NEGATIVE),
    "solve": (lambda a: np.linalg.solve(a, np.ones(2)), SINGULAR),
    "svd": (np.linalg.svd, NOT_FINITE), "pinv": (np.linalg.pinv, NOT_FINITE),
}


@pytest.mark.parametrize("bad", [[0], [4], [3, 4], [1, 3], list(range(5))])
@pytest.mark.parametrize("name", LIBRARY)
def test_the_first_lane_of_a_library_call(name: str, bad: list[int]) -> None:
    f, matrix = LIBRARY[name]
    lanes = np.stack([np.eye(2)] * 5)
    lanes[bad] = matrix
    mapped = fusec.vmap(f)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            mapped(lanes)
        found = [x for x in caught.value.__notes__ if x.startswith("in lane")]
        assert found == [f"in lane {bad[0]}"]
        assert caught.value.__context__ is None


def check_before_a_call(a: Any, i: Any) -> Any:
    if i > 8:
        raise ValueError("first")
    return np.linalg.inv(a)


def pick_before_a_call(a: Any, i: Any) -> Any:
    return a[0][i] / np.linalg.inv(a)[0, 0]


def call_before_a_pick(a: Any, i: Any) -> Any:
    return np.linalg.inv(a)[0, 0] * a[0][i]


@pytest.mark.parametrize("f", [check_before_a_call, pick_before_a_call, call_before_a_pick])
@pytest.mark.parametrize("singular", range(4))
@pytest.mark.parametrize("index", range(4))
def test_the_first_lane_beside_a_library_call(f: Any, singular: int, index: int) -> None:
    a, i = np.stack([np.eye(2)] * 4), np.zeros(4, np.int64)
    a[singular], i[index] = 0, 9
    lane, want = of_the_plain_loop(lambda _, a, i: f(a, i), a, i)
    with pytest.raises(type(want), match=str(want)) as caught:
        fusec.vmap(f)(a, i)
    found = [x for x in caught.value.__notes__ if x.startswith("in lane")]
    assert found == [f"in lane {lane}"]


def raise_before_a_pick(x: Any, i: Any, j: Any) -> Any:
    if i > 8:
        raise ValueError(f"{i} is too far from {j:.2f}")
    return x[j]


def assert_before_a_pick(x: Any, i: Any, j: Any) -> Any:
    assert i < 8, "far"
    return x[i] + x[j]


def unread_pick_before_a_raise(x: Any, i: Any, j: Any) -> Any:
    x[i]
    if j > 8:
        raise ValueError("second")
    return j


def loop_before_a_pick(x: Any, i: Any, j: Any) -> Any:
    s, k = 0.0, 0
    while k < i:
        k += 1
        s += x[k]
    return s + x[j]


@pytest.mark.parametrize("f", [raise_before_a_pick, assert_before_a_pick, loop_before_a_pick,
                               unread_pick_before_a_raise])
@pytest.mark.parametrize("is_jitted", [False, True])
def test_the_first_exception_of_a_lane_is_the_plain_loops(f: Any, is_jitted: bool) -> None:
    i, j = np.array([0, 2, 9, 9]), np.array([0, 1, 9, 9])
    lane, want = of_the_plain_loop(f, i, j)
    of_lanes = fusec.vmap(fusec.jit(f) if is_jitted else f, (None, 0, 0))
    nested = fusec.vmap(of_lanes, (None, 0, 0))
    for g, shape, notes in (of_lanes, (4,), [lane]), (nested, (2, 2), [lane % 2, lane // 2]):
        with pytest.raises(type(want)) as caught:
            g(X, i.reshape(shape), j.reshape(shape))
        assert str(caught.value) == str(want)
        assert [n for n in caught.value.__notes__ if "in lane" in n] == [
            f"in lane {n}" for n in notes]


@pytest.mark.parametrize("row", [0, 2, 3])
@pytest.mark.parametrize("column", [0, 1])
def test_lanes_in_lanes_name_both(row: int, column: int) -> None:
    """A check in a branch, and a library's call, which do not know."""
    def checked(x: Any) -> Any:
        if x > 5:
            raise ValueError(f"{x:.1f} is too far")
        return x

    x, a = np.ones((4, 2)), np.stack([np.stack([np.eye(2)] * 2)] * 4)
    x[row, column], a[row, column] = 9, 0
    x[3, 1], a[3, 1] = 7, 0
    for f, given in (checked, x), (np.linalg.inv, a):
        with pytest.raises(ValueError) as caught:
            fusec.vmap(fusec.vmap(f))(given)
        assert caught.value.__notes__[-2:] == [f"in lane {column}", f"in lane {row}"]
        if f is checked:
            assert str(caught.value) == f"{x[row, column]:.1f} is too far"


def test_a_long_lane_is_not_run_by_python() -> None:
    def f(n: Any) -> Any:
        k = 0
        while k < n:
            k += 1
        if k > 10:
            raise ValueError("far")
        return k

    start = time.perf_counter()
    with pytest.raises(ValueError, match="far") as caught:
        fusec.vmap(f)(np.array([0, 300_000_000]))
    assert "in lane 1" in caught.value.__notes__
    assert time.perf_counter() - start < 20


def test_what_python_does_not_raise_stays() -> None:
    """A function that only a trace runs, and one that catches all."""
    with pytest.raises(IndexError) as caught:
        fusec.vmap(fusec.grad(lambda i: X[i.astype(int)] * i))(np.array([0.0, 9.0]))
    assert "in lane 1" in caught.value.__notes__
    assert sys.gettrace() is None or "lanes" not in repr(sys.gettrace())


def test_lanes_in_lanes_name_no_lane_beyond_the_outer_ones() -> None:
    def f(x: Any) -> Any:
        return x + fusec.vmap(lambda i: X[i])(places).sum()

    places = np.array([0, 0, 0, 0, 0, 0, 0, 9])
    with pytest.raises(IndexError, match="index 9"):
        fusec.vmap(f)(np.ones(2))


def test_few_calls_find_the_first_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    error_of = LaneFunction._error

    def counted(self: Any, lanes: Any, start: int, stop: int) -> Any:
        counts.append(stop - start)
        return error_of(self, lanes, start, stop)

    monkeypatch.setattr(LaneFunction, "_error", counted)
    a = np.stack([np.eye(2)] * 256)
    a[200:] = 0
    with pytest.raises(np.linalg.LinAlgError) as caught:
        fusec.vmap(lambda x: np.linalg.inv(x))(a)
    assert "in lane 200" in caught.value.__notes__
    assert len(counts) <= 16 and sum(counts) <= 2 * 256


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


def raise_from_another(x: Any, i: Any) -> Any:
    if i > 8:
        raise ValueError(f"{i} is far") from KeyError("why")
    return x[i]


def raise_from_none(x: Any, i: Any) -> Any:
    if i > 8:
        raise ValueError(f"{i} is far") from None
    return x[i]


@pytest.mark.parametrize("f", [raise_from_another, raise_from_none])
def test_causes_are_those_of_the_lane(f: Any) -> None:
    """The compiled code's exception was the context, and took the place of the cause."""
    i = np.array([0, 1, 9, 9])
    _, want = of_the_plain_loop(f, i)
    mapped = fusec.vmap(f, (None, 0))
    for _ in range(2):
        with pytest.raises(ValueError, match="9 is far") as caught:
            mapped(X, i)
        got = caught.value
        assert repr(got.__cause__) == repr(want.__cause__)
        assert repr(got.__context__) == repr(want.__context__)
        assert got.__suppress_context__ == want.__suppress_context__
