"""A variable that is a Python number here and a NumPy number there has one dtype, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec
from fusec.errors import FusecTypeError, UnsupportedError

BYTES = np.tile(np.array([3, 8, 1], np.uint8), 13)


def largest_from_below(a: np.ndarray) -> Any:
    m, k = -1, -1
    for i in range(len(a)):
        if a[i] > m:
            m = a[i]
            k = i
    return m, k


def changes(a: np.ndarray) -> Any:
    before, n = -1, 0
    for v in a:
        if v != before:
            n += 1
        before = v
    return n


@pytest.mark.parametrize("program", [largest_from_below, changes])
def test_a_first_iteration_gives_the_dtype(program: Callable[..., Any]) -> None:
    check(program, BYTES)
    check(program, np.tile(np.array([3, 9, 4], np.int8), 13))


def absent(a: np.ndarray) -> Any:
    p = -1
    if a[0] > 100:
        p = a[1]
    return p < 0


def early(a: np.ndarray) -> Any:
    for v in a:
        if v > 100:
            return v
    return -1


def by_builtin(a: np.ndarray) -> Any:
    m = 10**9
    for v in a:
        m = min(m, v)
    return m


@pytest.mark.parametrize("program", [absent, early, by_builtin])
def test_a_number_that_the_dtype_cannot_hold(program: Callable[..., Any]) -> None:
    with pytest.raises(FusecTypeError, match=r"uint8 cannot hold it"):
        fusec.jit(program)(BYTES)


def test_small_and_large_floats() -> None:
    def smallest(x: np.ndarray) -> Any:
        best = 1e300
        for v in x:
            if v < best and v > 50:
                best = v
        return best

    with pytest.raises(FusecTypeError, match=r"1e\+300 and float32 elsewhere"):
        fusec.jit(smallest)(np.ones(3, "f4"))
    check(smallest, np.array([3.0, 70.0, 60.0]))


def test_ints_of_more_than_64_bits() -> None:
    def hashed(d: np.ndarray) -> Any:
        h = 0
        for v in d:
            h = (h * 31 + int(v)) & 0xFFFFFFFFFFFFFFFF
        return h

    with pytest.raises(UnsupportedError, match=r"18446744073709551615 and a Python int"):
        fusec.jit(hashed)(BYTES)


def test_arrays_of_rank_0_in_branches() -> None:
    """They lay in a scalar's memory: the process died."""
    def program(x: np.ndarray) -> Any:
        a = np.array(0.0)
        if x[0] > 0:
            a += 1
        if x[1] > 0:
            a += 1
        else:
            a[...] = a - 1
        return a

    for x in ([0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]):
        check(program, np.array(x))


def test_an_alias_of_what_a_loop_rebinds_and_writes() -> None:
    def program(x: np.ndarray) -> Any:
        a = np.zeros(1)
        b = a
        for v in x:
            a += 1
            if v > 2:
                a = np.ones(1)
        return a, b

    x = -np.ones(37)
    x[20] = 50
    with pytest.raises(UnsupportedError, match="writing to an array"):
        fusec.jit(program)(x)


def test_appended_arrays_that_are_written() -> None:
    def same(x: np.ndarray) -> Any:
        items, y = [], np.zeros(2)
        for v in x:
            y += v
            items.append(y)
        return items[0]

    def views(x: np.ndarray) -> Any:
        items = []
        for i in range(39):
            items.append(x[i : i + 2])
        return items[3] + items[38]

    x = np.random.default_rng(0).random(40)
    check(same, x)
    check(views, x)


def test_a_reversed_slice_of_run_time_size_in_a_branch() -> None:
    def program(x: np.ndarray) -> Any:
        k = int(x[1])
        if x[0] > 0:
            x[k:] = x[k:][::-1]
        return x

    check(program, np.array([3.0, 1, 2]))


def test_branches_in_which_all_that_is_left_raises() -> None:
    """The branch has checks and no result; found by a program with Python's state."""
    def program(x: np.ndarray, n: int) -> float:
        if x[2] > 2:
            while n > 0 and x[0] < 1:
                return 1.0
            if x.sum() < 3:
                raise KeyError("low")
        raise ValueError("none")

    for x in ([0.0, 1.0, 3.0], [2.0, -4.0, 3.0], [2.0, 4.0, 3.0], [2.0, 4.0, 1.0]):
        outcomes = []
        for run in (program, fusec.jit(program)):
            try:
                outcomes.append(run(np.array(x), 3))
            except (KeyError, ValueError) as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]


def test_what_numpy_refuses_on_a_side_that_is_not_taken() -> None:
    """An index that is known to be out of range raises where its side is taken, and not before."""
    def program(x: np.ndarray, k: int) -> Any:
        total = x.sum()
        if x[0] > 0:
            total = total + x[k]
        return total

    for k in (1, 12, -13):
        for first in (0.0, 2.0):
            x = np.arange(12.0)
            x[0] = first
            check(program, x, k)
