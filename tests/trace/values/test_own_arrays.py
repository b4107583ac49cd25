"""Arrays that plain NumPy makes in the trace, written to in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def write_after_reading(x):
    table = np.arange(3.0)
    y = x + table
    table[0] = 7
    return y, x + table


def write_in_a_branch(x):
    table = np.arange(3.0)
    if x[0] > 0:
        table[0] = 7
    return x + table, table


def write_through_plain_views(x, k):
    table = np.arange(12.0).reshape(3, 4)
    row, column, corner = table[1], table[:, 2], table[::-1, 1:3].T
    table[k] = x
    row[0] = 100
    corner[1, 0] += 5
    return table, row, column, corner, table.ravel()[5]


def write_in_a_loop(x):
    order = np.arange(40)
    for i in range(40):
        if x[i % 3] > 0:
            order[i] = order[39 - i]
    return order, order.sum()


def loop_carried_read_before_write(x):
    table = np.array([1.0, 2.0, 3.0])
    total = 0.0
    for _ in range(30):
        total += table[1]
        table[1] = x[0] * total
    return total, table


def writers(x):
    square, line = np.eye(3), np.arange(4.0)
    np.fill_diagonal(square, x[0])
    np.copyto(line[:3], x)
    line[::2] -= 1
    np.add(x, 1.0, out=line[1:])
    return square, line


def swapped_rows(x):
    previous, current = np.arange(4.0), np.zeros(4)
    for i in range(20):
        current[0] = i
        for j in range(1, 4):
            current[j] = previous[j - 1] + current[j - 1] * x[0]
        previous, current = current, previous
    return previous


def made_anew_in_each_iteration(x):
    total = 0.0
    for i in range(20):
        own = np.ones(3)
        own[1] = 5.0
        own[i % 3] += x[0]
        total += own.sum() * i
    return total


def in_a_helper(x):
    def fill(out, values):
        out[1:] = values[:-1]
        out.sort()

    table = np.array([9, 8, 7.5])
    fill(table, x)
    return table


CASES = (
    write_after_reading, write_in_a_branch, write_through_plain_views, write_in_a_loop,
    loop_carried_read_before_write, writers, swapped_rows, made_anew_in_each_iteration,
    in_a_helper,
)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_as_in_numpy(function: Callable[..., Any], sign: float) -> None:
    x = sign * np.array([0.5, -0.25, 2.0])
    args = (np.append(x, 3.0), 1) if function is write_through_plain_views else (x,)
    compiled, want = fusec.jit(function), function(*args)
    for _ in range(2):
        got = compiled(*args)
        parts = zip(got, want, strict=True) if type(want) is tuple else [(got, want)]
        for a, b in parts:
            np.testing.assert_allclose(a, b, rtol=1e-12)
            assert type(a) is type(b)


def test_results_are_new_in_every_call() -> None:
    @fusec.jit
    def made(x):
        table = np.arange(3.0)
        return table, x + table

    first, _ = made(np.ones(3))
    first[:] = 9
    second, total = made(np.ones(3))
    assert second.tolist() == [0, 1, 2] and total.tolist() == [1, 2, 3]


def test_a_variable_of_the_last_iteration_need_not_fit_where_it_is_not_read() -> None:
    @fusec.jit
    def shrinking(x):
        out = np.zeros(4)
        for k in range(4):
            if x[k] == 0.0:
                continue
            part = x[k:] * 2
            out[k:] += part
        return out

    x = np.array([1.0, 0.0, 3.0, 0.0])
    assert shrinking(x).tolist() == shrinking.__wrapped__(x).tolist()


def test_arrays_made_of_numpys_scalars_are_made_anew_in_every_call() -> None:
    """Fuzzer seed 30006906: the second call read the first one's write into a constant."""
    def program(x: Any) -> Any:
        made = np.nansum(x)[...]
        other = np.int64(2).reshape(1)
        outer = np.copysign.outer([1], 1e300)  # seed 60006092
        before = made <= x, other[0], outer[0]
        made.T[...] = 3
        other[0] = 9
        outer *= 1.5
        return before

    jitted = fusec.jit(program)
    assert [jitted(False) for _ in range(3)] == [program(False)] * 3
