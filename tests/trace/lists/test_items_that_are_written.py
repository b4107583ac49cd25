"""Arrays that a loop appended and that another name shows: a write to the one is seen in the other,
or refused; no list holds an old value of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

N = 18
X = np.random.default_rng(7).random((N, 3))


def written_in_the_next_iteration(x):
    u, us = np.zeros(3), []
    for i in range(N):
        u[0] += 1
        u = u * x[i]
        us.append(u)
    return np.array(us)


def variable_written_afterwards(x):
    u, us = np.zeros(3), []
    for i in range(N):
        u = u * 0.5 + x[i]
        us.append(u)
    u[0] = 100.0
    return np.array(us), us[-1] + 0.0, u


def item_written_afterwards(x):
    u, us = np.zeros(3), [x[1]]
    for i in range(N):
        u = us[-1] * 0.5 + x[i]
        us.append(u)
    us[-1][0] = 100.0
    return u, np.array(us)


def read_and_written_in_the_loop(x):
    us = [np.zeros(3)]
    for i in range(N):
        u = us[-1]
        u += 1.0
        us.append(u * x[i])
    return np.array(us)


def appended_again(x):
    us = [np.zeros(3)]
    for i in range(N):
        us.append(us[-1])
        us.append(us[-1] + x[i])
    return np.array(us)


def last_read_is_needed(x):
    us = [np.zeros(3)]
    for i in range(N):
        u = us[-1]
        us.append(u + x[i])
    u[0] = 5.0
    return np.array(us)


@pytest.mark.parametrize("program", [
    written_in_the_next_iteration, variable_written_afterwards, item_written_afterwards,
    read_and_written_in_the_loop, appended_again, last_read_is_needed], ids=lambda f: f.__name__)
def test_one_memory(program: Any) -> None:
    expected, got = program(X.copy()), fusec.jit(program)(X.copy())
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def views_of_what_is_written(x):
    y, us = x * 2.0, []
    for i in range(N):
        us.append(y[i])
    y[0] = 5.0
    return np.array(us)


def one_before_the_last(x):
    u, us = np.zeros(3), []
    for i in range(N):
        before = u
        u = u * 0.5 + x[i]
        us.append(u)
    us[-2][0] = 7.0
    return before


def what_is_gone_over(x):
    us = []
    for i in range(N):
        us.append(x[i] * 2.0)
    total = 0.0
    for u in us:
        total += u.sum()
        us[3][0] = total
    return total


@pytest.mark.parametrize("program", [views_of_what_is_written, one_before_the_last,
                                     what_is_gone_over], ids=lambda f: f.__name__)
def test_what_cannot_be_seen_is_refused(program: Any) -> None:
    try:
        got = fusec.jit(program)(X.copy())
    except UnsupportedError as error:
        assert "cure" in str(error) and __file__ in str(error)
    else:
        np.testing.assert_allclose(got, program(X.copy()), rtol=1e-12)
