"""``return``, ``break`` and ``continue`` out of ``with``, ``try`` and ``match``."""

# ruff: noqa: SIM108, B012

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def first_of_a_loop(x, t):
    try:
        for _ in [1, 2]:
            return t
    except ValueError:
        pass
    return x.sum()


def of_a_loop_in_finally(x, t):
    try:
        while True:
            return t
    finally:
        t = 5.0
    return x.sum()


def of_a_loop_in_with(x, t):
    with np.errstate(all="ignore"):
        for i in range(3):
            if i == 1:
                return t
    return x.sum()


def of_a_loop_in_match(x, t):
    match x.shape[0]:
        case 3:
            for _ in [1, 2]:
                return t
    return x.sum()


def of_a_loop_in_a_handler(x, t):
    try:
        raise ValueError
    except ValueError:
        for _ in [1, 2]:
            return t
    return x.sum()


def of_a_loop_in_else(x, t):
    try:
        pass
    except ValueError:
        pass
    else:
        for _ in [1, 2]:
            return t
    return x.sum()


def on_data_in_with(x, t):
    with np.errstate(all="ignore"):
        if x[0] > 0:
            return t
        t = t + 1
    t = t * 2
    return t + x.sum()


def loop_left_from_with(x, t):
    for i in range(30):
        with np.errstate(all="ignore"):
            if x[i % 3] > 1:
                break
            t += x[i % 3]
            if t < -50:
                continue
            t -= 1
        t += 0.5
    return t


def skipped_else(x, t):
    try:
        if x[0] > 0:
            return t
        t = 5.0
    except ValueError:
        t = 7.0
    else:
        t += 1
    finally:
        t = t + 2
    return t


def cases(x, t):
    match x.shape[0]:
        case 3:
            if x[0] > 0:
                return t
            t = 3.0
        case _:
            t = 9.0
    return t


def from_a_handler(x, t):
    try:
        x.reshape(7)
        return t
    except ValueError:
        if x[0] > 0:
            return t + 1
        t = 8.0
    return t


def endless(x, t):
    while True:
        try:
            t += 1
            if t > x.sum() + 10:
                return t
        finally:
            t += 0.25


def nested(x, t):
    with np.errstate(all="ignore"):
        with np.errstate(all="ignore"):
            for i in range(20):
                if x[i % 3] > t:
                    return i
                t -= 0.5
        return 100


def in_a_helper(x, t):
    def g(x):
        with np.errstate(all="ignore"):
            if x > 0:
                return x * 2
        return x * 3

    return g(x[0]) + g(t)


def finally_on_the_way_out(x, t):
    for i in range(4):
        try:
            if i == 2:
                continue
            if i == 3:
                break
            t += x[i]
        finally:
            t *= 0.5
    else:
        t = 99.0
    return t


def collected(x, t):
    out = []
    for i in range(3):
        with np.errstate(all="ignore"):
            if i == 1:
                continue
        out.append(x[i])
    return sum(out)


def with_else(x, t):
    for i in range(30):
        try:
            v = x[i % 3]
        except IndexError:
            break
        else:
            if v > 1:
                break
            t += 1
    return t


def exit_in_finally(x, t):
    for i in range(3):
        try:
            t += x[i]
        finally:
            if i == 1:
                break
    return t


def suppressed_after_all(x, t):
    with np.errstate(all="ignore"):
        if x[0] > 0:
            t = 1.0
        else:
            t = 2.0
        return t + x[1]


PROGRAMS = (
    first_of_a_loop, of_a_loop_in_finally, of_a_loop_in_with, of_a_loop_in_match,
    of_a_loop_in_a_handler, of_a_loop_in_else, on_data_in_with, loop_left_from_with, skipped_else,
    cases, from_a_handler, endless, nested, in_a_helper, finally_on_the_way_out, collected,
    with_else, exit_in_finally, suppressed_after_all)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_exits(f: Callable[..., Any]) -> None:
    jitted = fusec.jit(f)
    for x, t in ((np.full(3, -1.0), 1.0), (np.full(3, 2.0), 1.0), (np.array([-1.0, 0.5, 3]), -4.0)):
        want, got = f(x.copy(), t), jitted(x.copy(), t)
        assert float(got) == float(want)
    assert jitted.trace_count == 1


def test_a_return_evaluated_before_the_manager_leaves() -> None:
    class Counter:
        def __init__(self) -> None:
            self.left = 0

        def __enter__(self) -> Counter:
            return self

        def __exit__(self, *error: object) -> None:
            self.left += 1

    def program(x: Any, counter: Counter) -> Any:
        with counter as held:
            if x[0] > 0:
                return held.left + x[0]
        return held.left + x[1]

    mine, theirs, jitted = Counter(), Counter(), fusec.jit(program)
    for x in (np.array([1.0, 2.0]), np.array([-1.0, 2.0]), np.array([3.0, 2.0])):
        assert jitted(x, mine) == program(x, theirs)
        assert mine.left == theirs.left


def endless_with_both_exits(x, t):
    i = 0
    while True:
        try:
            i += 1
            if x[i] > t:
                return 1
            if i > 1:
                break
        finally:
            pass
    return 2


def endless_in_with(x, t):
    i = 0
    while True:
        with np.errstate(all="ignore"):
            i += 1
            if x[i] > t:
                return i
            if i > 1:
                break
    return -i


@pytest.mark.parametrize("program", [endless_with_both_exits, endless_in_with])
@pytest.mark.parametrize("t", [-1.0, 1.5, 9.0])
def test_break_out_of_an_endless_loop_that_may_return(program: Any, t: float) -> None:
    x = np.arange(4.0)
    assert fusec.jit(program)(x, t) == program(x, t)
