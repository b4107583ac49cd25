"""Arguments that overlap in memory: written through one, read through another."""

from __future__ import annotations

import weakref
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


def _looked_up(*_: Any) -> Any:
    raise AssertionError("no recent plan has answered")


def _parts(base: Any) -> list[tuple[Any, Any]]:
    """Arguments that share memory, and some that seem to."""
    square = base[:16].reshape(4, 4)
    return [(base[:4], base[2:6]), (base[5::-1][:4], base[1:5]), (base[1:5], base[:4]),
            (square[1:3].T, square[1:3, 2:]), (square[:, 0], square.ravel()[:4]),
            (base[:4], np.ones(4)), (base[:4].copy(), base[2:6])]


def test_recent_plans_for_arrays_of_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any, y: Any) -> Any:
        x *= 2
        return x[:2] + y[:2].T if x.ndim > 1 else x[:2] + y[:2]

    compiled = fusec.jit(program)
    for _ in range(2):  # all of them known, then
        for x, y in _parts(np.arange(20.0)):
            compiled(x, y)
    made = compiled.trace_count
    for number in range(len(_parts(np.arange(20.0)))):
        x, y = _parts(np.arange(20.0))[number]
        compiled(x, y)  # the most recent one
        with monkeypatch.context() as patch:
            patch.setattr(compiled._dispatcher.compiler, "flatten", _looked_up)
            mine, numpys = np.arange(20.0), np.arange(20.0)
            got = compiled(*_parts(mine)[number])
        np.testing.assert_array_equal(got, program(*_parts(numpys)[number]))
        np.testing.assert_array_equal(mine, numpys)
    assert compiled.trace_count == made
    # Of a longer array, of one that cannot be written, in another order: none of these plans.
    for base in (np.arange(24.0), np.arange(20.0)[::-1].copy()):
        mine, numpys = base.copy(), base.copy()
        np.testing.assert_array_equal(compiled(mine[:4], mine[2:6]),
                                      program(numpys[:4], numpys[2:6]))
        np.testing.assert_array_equal(mine, numpys)
    frozen = np.arange(20.0)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(frozen[:4], frozen[2:6])
    gone = weakref.ref(base := np.arange(20.0))
    compiled(base[:4], base[2:6])
    del base
    assert gone() is None
