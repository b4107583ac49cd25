"""Sizes that the program puts into arrays, ranges and NumPy's functions stay symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

SIZES = (20, 30, 41, 52, 77)


def vector(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n)


def written_as_a_tuple(x: Any) -> Any:
    path = np.zeros((3, 2), dtype=int)
    path[0] = len(x) - 1, len(x) + 2
    return path


def range_from_a_counter(x: Any) -> Any:
    total = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            total[i] += x[j] * i
    return total


def bound_in_a_loop(x: Any) -> Any:
    for i in range(len(x)):
        last = x[i] * i
    return last


FORMS: dict[str, Callable[[Any], Any]] = {
    "array of them": lambda x: (np.array([len(x), 5]), np.array((len(x),)), np.array([1, len(x)])),
    "array of one": lambda x: (np.array(len(x)), np.asarray(len(x) / 3), np.full(3, len(x))),
    "nested": lambda x: np.asarray([[len(x), 2.5], [1, len(x) / 3]]),
    "other dtypes": lambda x: (np.array(len(x), np.float32), np.array([len(x), 2], np.int16)),
    "tuple": written_as_a_tuple,
    "pad": lambda x: np.pad(x, 1, constant_values=10 * len(x)),
    "spread": lambda x: (np.cov(x, x * 2), np.average(x), np.broadcast_to(np.float64(2), len(x))),
    "steps": lambda x: np.arange(len(x), -len(x) - 1, -2.0) * x.sum() + np.zeros(len(x) + 1),
    "half": lambda x: np.abs(np.fft.rfft(x)) + np.zeros(len(x) // 2 + 1),
    "frequencies": lambda x: (np.fft.rfftfreq(len(x), x[0]), np.fft.fftfreq(len(x), d=x[1])),
    "counter": range_from_a_counter,
    "bound": bound_in_a_loop,
    "cut where even": lambda x: x[::2] if len(x) % 2 == 0 else x[::2] * 1,
}


def check_same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        for a, b in zip(got, want, strict=True):
            check_same(a, b)
        return
    assert (type(got), got.dtype, got.shape) == (type(want), want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_one_trace(form: str) -> None:
    function = FORMS[form]
    jitted = fusec.jit(function)
    for n in (*SIZES, *SIZES[::-1]):
        check_same(jitted(vector(n)), function(vector(n)))
    assert jitted.trace_count == (2 if form == "cut where even" else 1)


def test_sizes_that_do_not_fit_a_dtype_raise_at_those_sizes_alone() -> None:
    def noted(x: Any) -> Any:
        taken = np.zeros(3, np.uint8)
        taken[[0, 1]] = [len(x), 2]
        return taken, np.array([len(x)], np.int8)

    jitted = fusec.jit(noted)
    for n in (20, 30, 100, 200, 120, 300, 25):
        try:
            want = noted(vector(n))
        except OverflowError:
            with pytest.raises(OverflowError):
                jitted(vector(n))
        else:
            check_same(jitted(vector(n)), want)
