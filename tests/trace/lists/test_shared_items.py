"""Arrays, lists and dicts that are several items of the lists that loops fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

N = 120  # more than are written out
X = np.arange(4.0)


def of_two_lists(x):
    a, b = [], []
    for i in range(N):
        y = x + i
        a.append(y)
        b.append((y, i))
    b[3][0][0] = 9.0
    return a, b


def read_and_appended_to_another(x):
    a, b = [], [x * 0.5]
    for _ in range(N):
        a.append(b[-1])
        b.append(b[-1] + 1)
    b[3][0] = 9.0
    return a, b


def twice_in_an_item(x):
    a = []
    for i in range(N):
        y = x + i
        a.append((y, y))
    a[3][0][0] = 9.0
    return a


def of_a_list_gone_over(x):
    a = [x + i for i in range(N)]
    b = [(z, 1) for z in a]
    a[3][0] = 9.0
    return a, b


@pytest.mark.parametrize("program", [
    of_two_lists, read_and_appended_to_another, twice_in_an_item, of_a_list_gone_over])
def test_arrays_that_are_written_later(program: Any) -> None:
    with pytest.raises(fusec.UnsupportedError, match=r"writing to an array|written since"):
        fusec.jit(program)(X.copy())


def test_arrays_that_nobody_writes() -> None:
    def f(x):
        a, b = [], [x * 0.5]
        for _ in range(N):
            a.append((b[-1], b[0]))
            b.append(b[-1] + 1)
        return np.array(b), a[7][0] + a[8][1]

    for got, wanted in zip(fusec.jit(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(got, wanted)


def row_of_two_lists(x):
    a, b = [], []
    for i in range(N):
        row = [x[0] + i, i]
        a.append(row)
        b.append(row)
    a[3][0] = 5.0
    return a, b


def filled_after_it_was_appended(x):
    a = []
    for i in range(N):
        row = [0.0] * 3
        a.append(row)
        for j in range(3):
            row[j] = x[0] + i * j
    return a


def one_for_all(x):
    a, row = [], [x[0], x[1]]
    for _ in range(N):
        row[0] += 1
        a.append(row)
    return a


def last_row(x):
    a = [[x[0], 1.0]]
    for _ in range(N):
        row = a[-1]
        a.append([row[0] + 1, 2.0])
    row[0] = 7.0
    return a


@pytest.mark.parametrize("program", [
    row_of_two_lists, filled_after_it_was_appended, one_for_all, last_row])
def test_rows_are_those_of_python(program: Any) -> None:
    np.testing.assert_array_equal(fusec.jit(program)(X.copy()), program(X.copy()))


def written_where_data_may_leave_it(x):
    row, rows = [x[0] + 1.0], []
    for i in range(N):
        rows.append(row)
        if x[i % 4] > 1:
            row = [x[i % 4]]
    rows[-1][0] = 70.0
    return row, rows


def test_a_list_that_stays_a_variables_where_data_say_so() -> None:
    with pytest.raises(fusec.UnsupportedError, match="may have chosen"):
        fusec.jit(written_where_data_may_leave_it)(X.copy())
