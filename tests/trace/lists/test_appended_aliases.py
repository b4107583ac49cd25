"""Arrays that loops append to lists, and that the program writes into later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

X = np.random.default_rng(5).random(5)


def written_in_the_loop_around(x):
    log, y = [x * 0.5], x * 2
    for _ in range(20):
        for _ in range(20):
            log.append(y)
        y[0] += 0.25
    return log


def written_between_loops(x):
    log = [x * 0.5]
    for _ in range(2):
        x[0] += 0.25
        for _ in range(20):
            log.append(x)
            n = len(log)
    return log, n


def read_and_appended_again(x):
    y = x * 1.5
    log = [y]
    for _ in range(20):
        log.append(log[0])
    y *= 0.5
    return log


def at_a_position_of_the_run(x):
    log = [x, x + 1]
    for i in range(20):
        log.append(log[i])
    log[0][0] = 7.0
    return log


@pytest.mark.parametrize("program", [
    written_in_the_loop_around, written_between_loops, read_and_appended_again,
    at_a_position_of_the_run])
def test_items_that_are_written_later(program: Any) -> None:
    with pytest.raises(fusec.UnsupportedError, match="which was written since"):
        fusec.jit(program)(X.copy())


def test_items_that_nobody_else_has() -> None:
    def f(x):
        y = x * 1.5
        log = [y]
        for _ in range(20):
            log.append(log[-1] + 1)
        log[3][0], y[1] = 7.0, 3.0
        return log

    np.testing.assert_array_equal(fusec.jit(f)(X), f(X))


def read_while_written(x):
    y, total = x * 2, 0.0
    log = [y]
    for i in range(20):
        y[1] = x[0] + i
        total = total + log[0][1]
        log.append(x + i)
    return total, log


def appended_again_while_written(x):
    y = np.ones(4)
    log = [y]
    for i in range(20):
        log.append(log[-1])
        y[1] = x[0] + i
    return y.sum(), log


@pytest.mark.parametrize("program", [read_while_written, appended_again_while_written])
def test_items_that_the_loop_writes(program: Any) -> None:
    total, log = fusec.jit(program)(X.copy())
    wanted, items = program(X.copy())
    assert total == wanted
    np.testing.assert_array_equal(np.concatenate(log), np.concatenate(items))
