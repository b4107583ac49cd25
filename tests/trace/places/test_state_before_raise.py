"""Assignments of the program before it raises stay, as in Python."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

N = 0


def third(s, x):
    s.n += 1
    if s.n == 3:
        raise ValueError("three")
    return x * s.n


def on_data(s, x):
    s.n += 1
    s.array = s.array + x
    s.list.append(float(s.n))
    s.dict["k"] = s.n
    if x[0] > 1:
        raise ValueError("data")
    s.k = s.k + 1
    return x * s.n


def arguments(s, x):
    s.n += 1
    assert x.sum() < 4, "sum"
    s.n += 1
    x[0] = 5
    assert x[1] < 1.0, "second"
    x[1] = 7
    return x


def out_of_the_domain(s, x):
    s.n += 1
    s.k = math.sqrt(1.0 - float(x[0]))
    s.n += 5
    return x * s.k


def globally(s, x):
    global N
    N += 1
    if x[0] > 1:
        raise KeyError(3)
    N += 1
    return x * N


def in_a_library(s, x):
    s.n += 1
    s.k = 2.0 * s.n
    found = np.linalg.inv(np.outer(x, x) + np.eye(2) * (x[0] < 1))
    s.n += 1
    return found


def in_a_loop(s, x):
    for i in range(5):
        s.n += 1
        if x[0] > i + 0.5 and s.n > 7:
            raise ValueError("loop")
    return x * s.n


def in_the_side(s, x):
    s.n += 1
    if x[0] > 1:
        s.n = s.n * 100
        s.array = x * s.n
        raise ValueError("side")
    s.n += 1
    return x


def at_an_index(s, x):
    s.n += 1
    s.k = x[int(x[0])]
    s.n += 1
    return x * s.k


def by_shape(s, x):
    s.n += 1
    if x.shape == (2,):
        raise ValueError("shape")
    return x


def what_is_overwritten(s, x):
    s.k = x.sum() * 3
    assert x[0] < 1
    s.k = 1.0
    return x


def asked_for_its_truth(s, x):
    assert s.truth
    return x * s.truth.n


class Truth:
    def __init__(self) -> None:
        self.n = 0

    def __bool__(self) -> bool:
        self.n += 1
        return self.n < 3


def _bound(program: Any, s: Any) -> Any:
    return lambda x: program(s, x)


def outcome(program: Any, s: Any, x: Any) -> tuple[Any, ...]:
    try:
        result = program(x).tolist()
    except (ValueError, AssertionError, KeyError, IndexError, ZeroDivisionError) as error:
        result = type(error).__name__, str(error)
    state = s.n, s.k, s.array.tolist(), list(s.list), dict(s.dict), N, s.truth.n
    return result, x.tolist(), state


@pytest.mark.parametrize("program", [
    third, on_data, arguments, out_of_the_domain, globally, in_a_library, in_a_loop, in_the_side,
    at_an_index, by_shape, what_is_overwritten, asked_for_its_truth,
])
def test_what_was_assigned_stays(program):
    global N
    outcomes = []
    for compiled in (False, True):
        N = 0
        s = SimpleNamespace(n=0, k=0.0, array=np.zeros(2), list=[], dict={"k": 0}, truth=Truth())
        f = _bound(program, s)
        f = fusec.jit(f) if compiled else f
        outcomes.append([outcome(f, s, np.array([v, 0.5 if v < 2 else 1.5]))
                         for v in (0.5, 2.0, 0.5, 2.0, 2.0, 0.25)])
    wanted, got = outcomes
    assert any(type(result) is tuple for result, *_ in wanted)
    for a, b in zip(wanted, got, strict=True):
        assert repr(a[1:]) == repr(b[1:])
        assert a[0][0] == b[0][0]  # the exception's class, or the first number


def test_programs_without_state_note_nothing():
    f = fusec.jit(lambda x: x / (x.sum() > 0) if x[0] < 5 else x)
    f(np.ones(2))
    assert all(c.build.call_plan.states is None for c in f.traces)


def drawn_into(x, r):
    x[0] += r.random()
    if x[0] > -1:
        raise ValueError("drawn")
    return x


def drawn_after(x, r):
    x[1] = 7
    y = r.random()
    if y > -1:
        raise ValueError("after")
    return x


def drawn_again(x, r):
    for k in range(4):  # one line, of which the second time raises
        x[k] += 1
        if r.random() > 0.1:
            raise ValueError(f"{k}")
    return x


def decomposed(x, r):
    for k in range(4):
        x[k] += r.random()
        x[4] = np.linalg.cholesky(x[:4].reshape(2, 2))[0, 0]
    return x


@pytest.mark.parametrize("program", [drawn_into, drawn_after, drawn_again, decomposed])
def test_what_was_written_to_an_argument_before_or_after_a_draw_stays(program):
    compiled, seen = fusec.jit(program), []
    for f in (program, compiled, compiled):
        x, r = np.array([1.0, 0.5, 3.0, -4.0, 5.0]), np.random.default_rng(3)
        with pytest.raises((ValueError, np.linalg.LinAlgError)) as raised:
            f(x, r)
        seen.append((str(raised.value).splitlines()[0], x.tolist(), r.random()))
    assert seen[1] == seen[0] == seen[2]


def inverses_of_one_line(s, a, b):
    for k, m in enumerate((a, a, b, b)):
        s.n = k
        s.array[0] = k
        s.k = np.linalg.inv(m).sum() if k != 1 else np.linalg.inv(m).max()
    return s.k


def unread_inverses(s, a, b):
    for k, m in enumerate((a, b, a)):
        s.n = k
        y = np.linalg.inv(m)
    return y


@pytest.mark.parametrize("program", [inverses_of_one_line, unread_inverses])
def test_calls_of_one_line_of_which_the_passes_left_fewer(program):
    """Each has its own state before it."""
    compiled, one = fusec.jit(program), np.eye(2)
    for a, b in [(one, 2 * one), (one, 0 * one), (0 * one, one), (one, one)]:
        seen = []
        for f in (program, compiled):
            s = SimpleNamespace(n=-1, k=-1.0, array=np.zeros(2))
            try:
                result = f(s, a, b).tolist()
            except np.linalg.LinAlgError as error:
                result = str(error)
            seen.append((result, s.n, float(s.k), s.array.tolist()))
        assert seen[0] == seen[1]
