"""Arguments that overlap in memory: written through one, read through another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check, run

import fusec
from fusec.trace.call.overlap import _layout, _memory, view_of


def shifted() -> list[np.ndarray]:
    z = np.arange(14.0)
    return [z[2:], z[:-2]]


def reversed_() -> list[np.ndarray]:
    x = np.arange(12.0)
    return [x, x[::-1]]


def interleaved() -> list[np.ndarray]:
    z = np.arange(36.0)
    return [z[::3], z[6:18]]


def row_and_column() -> list[np.ndarray]:
    a = np.arange(144.0).reshape(12, 12)
    return [a[3], a[::-1, 4]]


def matrices() -> list[np.ndarray]:
    a = np.asfortranarray(np.arange(48.0).reshape(6, 8))
    return [a[1:4, 2:6], a[4:1:-1, 5:1:-1]]


def of_a_part() -> list[np.ndarray]:
    """Their base is a strided part of something larger, and the last row is not full."""
    a = np.arange(96.0).reshape(8, 12)[:, 1:9]
    return [a[2:5, 3:7], a[3:6, 2:6]]


CASES = [shifted, reversed_, interleaved, row_and_column, matrices, of_a_part]


def shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x[1:] = y[:-1] * 2
    y += x
    return y


def elements(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Any]:
    for i in range(len(x)):
        x[i] += y[-i]
        y[i] = x[0] * 0.5
    return x, y.sum()


def returned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    x *= 2.0
    return x, y, y[1:], x + y


@pytest.mark.parametrize("made", CASES)
@pytest.mark.parametrize("program", [shift, elements, returned])
def test_overlapping_arguments(
    made: Callable[[], list[np.ndarray]], program: Callable[..., Any]
) -> None:
    check(program, *made(), engines=False, fp="strict")


@pytest.mark.parametrize("made", CASES)
def test_views_are_made_of_slices(made: Callable[[], list[np.ndarray]]) -> None:
    arrays = made()
    memory = _memory(arrays)
    assert memory is not None
    for array in arrays:
        view = view_of(memory, _layout(array, memory))
        assert view.__array_interface__ == array.__array_interface__


def test_separate_and_overlapping_calls_in_turn() -> None:
    f = fusec.jit(shift)
    for arrays in (shifted(), [np.ones(12), np.ones(12)], shifted(), reversed_(), shifted()):
        want = run(shift, arrays)
        got = run(f, arrays)
        np.testing.assert_array_equal(got.result, want.result)
    # One for each kind of overlap, and one for arrays that lie apart.
    assert f.trace_count == 3


def test_arrays_without_elements_overlap_nothing() -> None:
    def program(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x /= y
        return x

    assert run(fusec.jit(program), [np.ones(0), np.ones(0)]).error is None


def test_a_third_array_in_the_memory_behind_two() -> None:
    def program(x: np.ndarray, y: np.ndarray, v: np.ndarray) -> float:
        x[0] = v[1] + y[0]
        return float(y[0])

    def arrays() -> list[np.ndarray]:
        z = np.arange(20.0)
        return [z[0:5], z[3:8], z[10:15]]

    assert run(fusec.jit(program), arrays()).result == program(*arrays())


def test_what_cannot_be_a_view_of_one_memory_is_refused() -> None:
    def copy(x: np.ndarray, y: np.ndarray) -> None:
        x[:] = y.astype(np.float64)

    z = np.zeros(13)
    with pytest.raises(fusec.UnsupportedError, match="argument x is written and overlaps"):
        fusec.jit(copy)(z[:12], z.view(np.int64)[1:])


def test_the_concrete_function_is_the_one_that_a_call_runs() -> None:
    """Shrunk from fuzzer seed 252: the back ends were compared on a trace that no call uses."""
    def f(x: Any, y: Any) -> Any:
        x **= y
        return y * 1

    x = np.array([2.0, 3.0, 4.0])
    check(f, x, x[::-1])
    g = fusec.jit(f)
    assert g.concrete(x, x[::-1])(x, x[::-1]).tolist() == [16.0, 27.0, 16.0]
