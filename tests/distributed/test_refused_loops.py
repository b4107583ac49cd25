"""Loops over arrays in blocks that are refused by name, and errors that their iterations raise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")
import dask  # noqa: E402

from tests.distributed.test_loops_in_blocks import POSITIVE, V, converged, heat  # noqa: E402


def endless(x: Any) -> Any:
    while np.abs(x).max() > 1e-3:
        x = x * 0.5 - x.mean()
    return x


def many(x: Any) -> Any:
    for _ in range(5000):
        x = x - x.mean()
    return x


def by_a_sum(x: Any) -> Any:
    n = int(np.abs(x).sum())
    for _ in range(n):
        x = x - x.mean()
    return x


def sorted_inside(x: Any) -> Any:
    for _ in range(5000):
        x = np.sort(x) * 0.5
    return x


def rolled_inside(x: Any) -> Any:
    for k in range(40):
        x = 0.5 * np.roll(x, k) - x.mean()
    return x


REFUSED = {
    "data end it": (endless, ("a loop that needs other blocks, which data end", "axis 0",
                              "for _ in range(n)")),
    "many": (many, ("of more iterations than are written out", "axis 0", "at most 1,000")),
    "a sum's number": (by_a_sum, ("which data end", "axis 0", "for _ in range(n)")),
    "rolled": (rolled_inside, ("np.take along axis 0", "note: x: f64", "x.rechunk({0: -1})")),
    "sorted": (sorted_inside, ("np.sort", "along axis 0", "x.rechunk({0: -1})")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_line_axis_and_cure(name: str) -> None:
    function, words = REFUSED[name]
    with pytest.raises(fusec.errors.UnsupportedError) as caught:
        fusec.jit(function)(da.from_array(V, chunks=10))
    text = str(caught.value)
    assert all(word in text for word in (*words, "cure", "test_refused_loops.py")), text


def test_a_step_wider_than_a_block_is_refused() -> None:
    def wide(x: Any) -> Any:
        for _ in range(20):
            y = x.copy()
            y[6:-6] = x[12:] + x[:-12]
            x = y
        return x

    with pytest.raises(fusec.errors.UnsupportedError) as caught:
        fusec.jit(wide)(da.from_array(V, chunks=5))
    text = str(caught.value)
    assert "elements beyond a block" in text and "x.rechunk({0:" in text, text


def test_errors_of_iterations_are_raised_where_they_run() -> None:
    def indexed(x: Any, table: Any, n: int) -> Any:
        for k in range(n):
            x = x * table[k]
        return x

    lazy = fusec.jit(indexed)(da.from_array(V, chunks=10), np.arange(30.0), 40)
    with pytest.raises(IndexError, match="index 30 is out of bounds"):
        lazy.compute(scheduler="sync")


def test_other_numbers_of_iterations_have_their_own_results() -> None:
    f = fusec.jit(heat)
    for steps in (0, 1, 17, 40):
        got = f(da.from_array(V, chunks=20), steps).compute(scheduler="sync")
        np.testing.assert_array_equal(got, f(V, steps))


def test_all_results_are_computed_together() -> None:
    lazy = fusec.jit(converged)(da.from_array(POSITIVE, chunks=11), 1e-10)
    got = dask.compute(*lazy, scheduler="sync")
    want = fusec.jit(converged)(POSITIVE, 1e-10)
    assert np.array_equal(got[0], want[0]) and got[1] == want[1] < 30


def test_a_check_of_a_sum_over_blocks_is_refused() -> None:
    def checked(x: Any) -> Any:
        total = x.sum()
        if total > 1e9:
            raise ValueError("too large")
        return x / total

    with pytest.raises(fusec.errors.UnsupportedError, match="a check of values in blocks"):
        fusec.jit(checked)(da.from_array(V, chunks=10))


def test_a_bit_of_a_number_is_no_truth() -> None:
    """``k & 1`` of an even number is 0, not False."""
    def alternating(x: Any, n: int) -> Any:
        for k in range(n):
            x = x - x.max() if k & 1 == 0 else x * 0.5
        return x

    got = fusec.jit(alternating)(da.from_array(V, chunks=10), 7).compute(scheduler="sync")
    np.testing.assert_array_equal(got, fusec.jit(alternating)(V, 7))


def test_loops_of_arrays_in_one_block_are_computed_whole() -> None:
    f = fusec.jit(converged)
    got = dask.compute(*f(da.from_array(POSITIVE, chunks=-1), 1e-10), scheduler="sync")
    assert np.array_equal(got[0], f(POSITIVE, 1e-10)[0])
