"""Variables that only some ways through a program bind: their values, and Python's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import assert_outcomes, run

import fusec
from fusec.errors import UnsupportedError

R = np.random.default_rng(0)
LONG = R.standard_normal(100)
SINGLE = np.where(np.arange(100) == 7, 1, -np.abs(LONG))
ARRAYS = [np.array(v) for v in (
    [1.0, -2, 3], [-1.0, -2, -3], [-0.1, 0.2, -0.3], [0.1, 0.2, -3.0])] + [
    LONG, -np.abs(LONG), SINGLE]


def last_positive(x: Any) -> Any:
    for v in x:
        if v > 0:
            last = v
    return last


def last_of_selected(x: Any) -> Any:
    for v in x[x > 0]:
        w = v * 2
    return w


def bound_in_while(x: Any) -> Any:
    i = 0
    while x[i] > 0:
        w = x[i]
        i += 1
    return w + i


def bound_in_nested_loops(x: Any) -> Any:
    for i in range(len(x)):
        for v in x[i:i + 2]:
            if v > 1:
                found = v * i
    return found


def bound_before_it_breaks(x: Any) -> Any:
    for v in x:
        if v < -1:
            break
        w = v
    return w


def one_for_the_other(x: Any) -> Any:
    if x[0] > 0:
        b = x[1]
    return b if x[1] > 0 else x[2]


def steps(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if i > 0:
            s += abs(x[i] - before)  # noqa: F821
        before = x[i]  # noqa: F841
    return s


def last_row(x: Any) -> Any:
    for v in x:
        if v > 0:
            row = v * np.ones(3)
    return row


def in_a_container(x: Any) -> Any:
    if x[0] > 0:
        b = x[1]
    return [x[2], b]


def given_to_a_function(x: Any) -> Any:
    if x[0] > 0:
        b = x[1]
    return twice(b)


def twice(v: Any) -> Any:
    return v + v


@pytest.mark.parametrize("program", [
    last_positive, last_of_selected, bound_in_while, bound_in_nested_loops, bound_before_it_breaks,
    one_for_the_other, steps, last_row, in_a_container, given_to_a_function])
def test_values_and_exceptions(program: Any) -> None:
    jitted = fusec.jit(program)
    for x in ARRAYS:
        got, want = run(jitted, [x]), run(program, [x])
        assert_outcomes(got, want, what=f"{program.__name__}({x[:4]})")
        if isinstance(want.error, UnboundLocalError):
            assert str(got.error).startswith(str(want.error))


def guarded_index(x: Any, k: Any) -> Any:
    if k[0] < len(x):
        w = x[k[0]]
    s = x.sum()
    if k[0] < len(x):
        s += w
    return s


def guarded_inverse(a: Any, k: Any) -> Any:
    if k[0] > 0:
        w = np.linalg.inv(a)
    s = a.sum()
    if k[0] > 0:
        s += w.sum()
    return s


def test_what_one_side_computes_is_computed_there_only() -> None:
    """An index out of range and a singular matrix on the other side are of no matter."""
    for k in (2, 7, -1):
        args = np.arange(5.0), np.array([k])
        assert fusec.jit(guarded_index)(*args) == guarded_index(*args)
    for args in ((np.eye(2), np.array([1])), (np.zeros((2, 2)), np.array([-1]))):
        assert fusec.jit(guarded_inverse)(*args) == guarded_inverse(*args)


def of_a_size_of_its_own(x: Any, k: Any) -> Any:
    for i in range(k[0]):
        row = x[i:i + 2]
    if k[0] > 1:
        return row.sum()
    return x[0]


def test_arrays_of_a_size_that_each_iteration_decides_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="'row', whose size each iteration"):
        fusec.jit(of_a_size_of_its_own)(np.arange(5.0), np.array([3]))


def starts_in_the_loop(x: Any) -> Any:
    for k in range(20):
        if k == 0:
            s = 0.0
        s += x[k % len(x)]
    return s


def extremes_from_the_first(x: Any) -> Any:
    for k, v in enumerate(x):
        if k == 0:
            low = high = v
        elif v < low:
            low = v
        elif v > high:
            high = v
    return low, high


@pytest.mark.parametrize("program", [starts_in_the_loop, extremes_from_the_first])
def test_bound_by_the_first_iteration(program: Any) -> None:
    jitted = fusec.jit(program)
    for x in ARRAYS:
        got, want = jitted(x), program(x)
        assert np.array_equal(got, want)
