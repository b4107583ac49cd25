"""``any`` and ``all`` go through the items as far as Python does, whatever these do."""

from __future__ import annotations

import itertools
import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

S = SimpleNamespace(n=0)


def assigns(x):
    n = 0

    def above(v):
        nonlocal n
        n += 1
        return v > 2

    first = any(above(v) for v in x)
    second = all(above(v) for v in x)
    return first, second, n


def assigns_attributes(x):
    S.n = 0

    def above(v):
        S.n += 1
        return v > 2

    return any(above(a + b) for a, b in zip(x, x[::-1], strict=True)), S.n


def writes(x):
    out = np.zeros(5)

    def above(k, v):
        out[k] = 1
        return v > 2

    return any(above(k, v) for k, v in enumerate(x)), out


def writes_for_parts(x):
    out = np.zeros(3)

    def above(k, part):
        out[k] = part[0]
        return part.sum() > 0.5

    return any(above(k, p) for k, p in enumerate([x[:2], x[2:4], x[4:]])), out


def raises(x):
    def above(v):
        if v == -4:
            raise ValueError("reached")
        return v > 3

    return any(above(v) for v in x)


def divides(x):
    return any(1.0 / float(v - 3) > 0.0 for v in x), any(1.0 / float(v) > 0.9 for v in x)


def picks(x, at=np.array([0, 9, 1])):  # noqa: B008
    return any(x[k] > 0 for k in at.copy()), all(x[at[k]] < 0 for k in range(3))


def binds(x):
    found = any((hit := v) > 2 for v in x)
    any((last := v) > 0 for v in x if (seen := v) > -3)
    both = any((product := v * w) > 7 for v in x for w in x)
    every = all((many := v) < 2.5 for v in np.concatenate((x,) * 6))
    return found, hit, last, seen, both, product, every, many


def binds_in_loops(x):
    out, n = np.zeros(3), 0
    for k in range(3):
        if any((hit := v) > k for v in x):
            out[k] = hit
    while any((larger := v) > n for v in x):
        n = n + int(larger) + 1
    return out, n


def conditions(x):
    return (any(v > 2 for v in x if v < 4), all(v > 2 for v in x if v < 4),
            any(v > 2 and w < 0 for v in x for w in x if w < v),
            all(v > w for v in x if v > 0 for w in x if w < 0 if w > -3),
            any(all(v > 0 for v in row) for row in np.outer(x, x)))


def known(x):
    log = []
    found = any(log.append(v) or v > 2 for v in [1, 2, 3, 4])
    rest = (v > 2 for v in [1, 2, 3, 4])
    return (found, len(log), any(rest), list(rest), any(k > 3 for k in itertools.count()),
            any(v for v in x[:0]), all(()), any(map(operator.gt, x, x[::-1])),
            any(zip(x, x, strict=True)))


def generators(x):
    def windows():
        held = []
        for v in x:
            held.append(v)
            yield sum(held) > 2

    def ends(limit):
        yield x[0] > limit
        yield x[2] > limit
        raise ValueError("end")

    return any(windows()), any(ends(2)), any(ends(20))


def outcome(f: Any, x: np.ndarray) -> Any:
    try:
        return repr(f(x.copy()))
    except (ValueError, ZeroDivisionError, IndexError) as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize("program", [
    assigns, assigns_attributes, writes, writes_for_parts, raises, divides, picks, binds,
    binds_in_loops, conditions, known, generators])
def test_as_far_as_python_goes(program):
    compiled = fusec.jit(program)
    for x in ([1.0, -2.0, 3.0, -4.0, 5.0], [4.0, 5.0, 3.5, -1.0, 0.0], [0.0, 0.5, -2.5, 1.0, -4.0]):
        assert outcome(compiled, np.array(x)) == outcome(program, np.array(x))


def test_draws_stop_where_an_item_decides():
    def f(x, r):
        return any(r.random() > v for v in x), r.random()

    x = np.array([0.9, 0.2, 0.1, 0.0])
    assert fusec.jit(f)(x, np.random.default_rng(1)) == f(x, np.random.default_rng(1))


def appends(x):
    log = []
    return any(log.append(v) or v > 2 for v in x), log


def appends_in_map(x):
    log = []

    def above(v):
        log.append(v)
        return v > 2

    return any(map(above, x)), log


def appends_in_generator(x):
    log = []

    def items():
        for v in x:
            log.append(v)
            yield v > 2

    return all(items()), log


def assigns_in_generator(x):
    n = 0

    def items():
        nonlocal n
        for v in x:
            n += 1
            yield v > 2

    return any(items()), n


def goes_on(x):
    items = (v > 2 for v in x)
    return any(items), list(items)


@pytest.mark.parametrize(("program", "words"), [
    (appends, "list.append"), (appends_in_map, "list.append"),
    (appends_in_generator, "list.append"), (assigns_in_generator, "how many are taken"),
    (goes_on, "going on with an iterator")])
def test_what_is_refused(program, words):
    with pytest.raises(fusec.FusecError, match=words):
        fusec.jit(program)(np.array([1.0, -2.0, 3.0]))
