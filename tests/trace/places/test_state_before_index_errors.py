"""Assignments of the program before an index is out of range stay, as in Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.state.variable import Variable


def read(s, x, i):
    s.n += 1
    s.k = x[i[0]]
    s.n += 1
    return x * s.k


def gather(s, x, i):
    s.n += 1
    s.k = x[i].sum()
    s.n += 1
    return x * s.k


def write(s, x, i):
    s.n += 1
    x[0] = 7
    x[i[0]] = 2.0
    s.n += 1
    return x * 1


def scatter(s, x, i):
    s.n += 1
    x[0] = 7
    x[i] = 2.0
    x[1] = 8
    return x * 1


def attribute(s, x, i):
    s.a = s.a + 1
    s.l.append(1.0)
    s.k = s.a[i[0]]
    s.d["k"] = s.n
    return x * s.k


def in_place(s, x, i):
    s.a += 1
    s.k = s.a[i[0]]
    s.a += 1
    return x * s.k


def variable(s, x, i):
    s.v.assign_add(1.0)
    s.k = x[i[0]]
    s.v.assign_add(1.0)
    return x * s.k


def unneeded(s, x, i):
    """Neither element is needed in the end: their checks are made for themselves."""
    x[0] = 5
    s.k = x[i[0]]
    x[1] = 6
    s.k = x[i[1]]
    x[2] = 7
    return x


def nowhere(s, x, i):
    s.n += 1
    x[i[0]]
    s.n += 1
    x[int(i[1])]
    return x * 1


def through_a_view(s, x, i):
    s.n += 1
    s.k = x.reshape(2, 2)[i[0] // 2].sum()
    s.n += 1
    return x


def added(s, x, i):
    x[0] = 7
    np.add.at(x, i, 1.0)
    s.n += 1
    return x * 1


def called(s, x, i):
    def at(k):
        s.n += 1
        return x[k]

    return at(i[0]) + at(i[1])


def in_a_loop(s, x, i):
    """The changes of iterations before it are lost."""
    s.n += 1
    x += 1
    for k in i.repeat(10):
        x[k] += 1
    s.n += 1
    return x * 1


def outcome(program: Any, s: Any, x: np.ndarray, i: np.ndarray) -> Any:
    try:
        result = program(s, x, i).tolist()
    except IndexError as error:
        result = str(error).partition("\n")[0]
    return (result, x.tolist(), s.n, float(s.k), s.a.tolist(), list(s.l), dict(s.d),
            float(s.v.numpy()))


def state() -> Any:
    return SimpleNamespace(n=0, k=0.0, a=np.zeros(4), l=[], d={}, v=Variable(0.0))


@pytest.mark.parametrize("program", [
    read, gather, write, scatter, attribute, in_place, variable, unneeded, nowhere, through_a_view,
    added, called])
def test_what_was_assigned_stays(program: Any) -> None:
    jitted, ours, pythons = fusec.jit(program), state(), state()
    for indices in ([1, 2], [9, 1], [1, 9], [2, 1], [1, -9], [9, 8]):
        for n in (4, 4) if program is through_a_view else (4, 6, 7):
            for s in (ours, pythons):
                s.a = np.resize(s.a, n)
            x, i = np.arange(float(n)), np.array(indices)
            assert outcome(jitted, ours, x.copy(), i) == outcome(program, pythons, x.copy(), i)


def test_of_a_loop_what_was_before_it() -> None:
    jitted, s = fusec.jit(in_a_loop), state()
    for n, bad in ((4, 9), (4, 3), (5, 9)):
        x, before = np.arange(float(n)), s.n
        with pytest.raises(IndexError) if bad > n else np.errstate():
            jitted(s, x, np.array([1, bad]))
        assert s.n == before + (1 if bad > n else 2)
        np.testing.assert_array_equal(x[[0, 2]], [1, 3])
        assert x[1] == (2 if bad > n else 12)
