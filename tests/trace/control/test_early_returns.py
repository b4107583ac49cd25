"""The result that a loop is left with is computed where the loop is left, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

Array = Any


def in_a_loop(A: Array, c: float) -> Any:
    for i in range(30):
        if c > i:
            return np.linalg.inv(A)
    return A


def in_a_loop_of_one_iteration(A: Array, c: float) -> Any:
    for _ in range(1):
        if c > 0:
            return np.linalg.inv(A)
    return None


def in_a_while_loop(A: Array, c: float) -> Any:
    i = 0
    while i < 10:
        if c > i:
            return np.linalg.inv(A)
        i += 1
    return A


def part_and_number(A: Array, c: float) -> Any:
    for i in range(30):
        if c > i:
            return np.linalg.inv(A)[0], i
    return A[0], -1


def array_and_view(A: Array, c: float) -> Any:
    for i in range(30):
        if c > i:
            B = np.linalg.inv(A)
            return B[:, ::-1], B
    return None


def loop_without_end_elsewhere(A: Array, c: float) -> Any:
    for i in range(30):
        if c > i:
            n = 0
            while A[0, 0] * n <= 5:
                n += 1
            return float(n)
    return -1.0


def indices_and_containers(A: Array, c: float) -> Any:
    for i in range(30):
        if c > i:
            return {"a": A[i % 2, A[0].astype(int) % 3], "b": [int(A[0, 0]), np.float32(1)]}
    return None


def two_ways(A: Array, c: float) -> Any:
    for i in range(40):
        if c > i:
            M = np.linalg.inv(A)
            return (M, i) if c > 1 else (M[::-1], -i)
    return None


def in_a_helper(A: Array, c: float) -> Any:
    def found(i: int) -> Any:
        if c > i:
            return np.linalg.inv(A)
        return None

    for i in range(3):
        r = found(i)
        if r is not None:
            return r
    return A


def in_two_loops(A: Array, c: float) -> Any:
    for r in A:
        for s in A:
            if c > r[0]:
                return np.linalg.solve(A, s)
    return A[0] * 3


def written_before(A: Array, c: float) -> Any:
    for i in range(4):
        if c > i:
            M = np.linalg.inv(A)
            A[0] = 3
            return M[:, ::-1], A, A.T
    return None


def certainly_read(A: Array, c: float) -> Any:
    if c > 0:
        M = np.linalg.inv(A)
    return M @ A


def certainly_written(A: Array, c: float) -> Any:
    if c > 0:
        M = np.linalg.inv(A)
        R = M[::-1]
    R[0] = 5
    return M


def two_half_bound(A: Array, c: float) -> Any:
    for i in range(4):
        if c > i:
            M = np.linalg.inv(A)
        if c > i + 1:
            return M, M[0], A
        A = A + 1
    return None


def read_behind_or(A: Array, c: float) -> Any:
    for i in range(20):
        if c > 3:
            b = 2.0
        if not A.any():
            if c > A[i % 2, 0] or b < 0.5:
                return c * 2
            return c
    return None


@pytest.mark.parametrize("program", [
    in_a_loop, in_a_loop_of_one_iteration, in_a_while_loop, part_and_number, array_and_view,
    loop_without_end_elsewhere, indices_and_containers, two_ways, in_a_helper, in_two_loops,
    written_before, certainly_read, certainly_written, two_half_bound, read_behind_or])
def test_early_returns(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program, fp="strict")
    singular, regular, high = np.zeros((2, 2)), np.array([[1.0, 2], [1, 1]]), np.full((2, 2), 9.0)
    for A, c in ((singular, -1.0), (regular, 2.0), (singular, 1.0), (regular, -1.0),
                 (high, 1.0), (high, -1.0), (regular, 0.5), (regular, 5.0)):
        if program is loop_without_end_elsewhere and A is singular and c > 0:
            continue  # for which it would not end
        assert outcome(jitted, A, c) == outcome(program, A, c)


def outcome(f: Callable[..., Any], A: Array, c: float) -> Any:
    own = A.copy()
    try:
        return repr((f(own, c), own))
    except (np.linalg.LinAlgError, UnboundLocalError, IndexError) as error:
        return type(error).__name__


def added_before_it_is_bound(x: Array, c: float) -> Any:
    q = 1.0
    w = 12
    while w > 0 and x[1] <= x[w % 4]:
        w -= 1
        if c >= x[-1]:
            q += b  # noqa: F821
        else:
            b = c  # noqa: F841
    return q


def test_a_number_that_changes_once_a_variable_is_bound() -> None:
    jitted = fusec.jit(added_before_it_is_bound)
    for x in ([3.0, 0, 1, 2], [1, 1, 0, 1], [0, 0, 0, 0], [5, 1, 2, 0.25]):
        assert outcome(jitted, np.array(x), 0.5) == outcome(
            added_before_it_is_bound, np.array(x), 0.5)


def test_an_array_that_a_loop_returns_of_a_size_that_data_decide() -> None:
    def chosen(x: Any, c: float) -> Any:
        w = x[x <= c]
        while x[0] < c:
            return w
        return w * 2

    jitted, x = fusec.jit(chosen), np.linspace(0.3, 1.2, 20)
    for c in (0.8, 0.5, 0.1):
        np.testing.assert_array_equal(jitted(x, c), chosen(x, c))
