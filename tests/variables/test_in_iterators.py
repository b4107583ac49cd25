"""Variables that iterators of Python's hand on are written as if the program named them."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusec

Variables = list[Any]


def zipped(ws: Variables) -> None:
    for p, g in zip(ws, [1.0, 2.0], strict=True):
        p[...] = p - g
    for p, g in zip(ws, [3.0, 2.0], strict=False):
        p -= g


def assigned(ws: Variables) -> None:
    for p, (g, h) in zip(tuple(ws), [(1.0, 2.0), (2.0, 3.0)], strict=True):
        p.assign_sub(np.full(3, g * h))


def numbered(ws: Variables) -> None:
    for k, p in enumerate(ws, 1):
        p.assign(p * k)
    for k, (p, g) in enumerate(zip(ws, [1.0, 2.0], strict=True)):
        p[k] = g


def reversed_(ws: Variables) -> None:
    for p in reversed(ws):
        p.assign(p + ws[0])


def copied(ws: Variables) -> None:
    for p in [*list(ws), *tuple(ws)]:
        p.assign(p + 1)


def next_(ws: Variables) -> None:
    rest = iter(ws)
    first = next(rest)
    first.assign(first + 1)
    for p in rest:
        p.assign(p * first)


def sorted_(ws: Variables) -> None:
    for k, p in enumerate(sorted(ws, key=lambda v: -v[0])):
        p.assign(p + k)


def filtered(ws: Variables) -> None:
    for p in filter(lambda v: True, ws):
        p.assign(p + 1)


def mapped(ws: Variables) -> None:
    list(map(lambda p, g: p.assign(p + g), ws, [1.0, 2.0]))


def by_itertools(ws: Variables) -> None:
    for p in itertools.chain(ws[:1], itertools.islice(ws, 1, 2)):
        p.assign(p + 1)
    for p, g in itertools.product(ws, [1.0, 2.0]):
        p.assign(p + g)
    list(itertools.starmap(lambda p, g: p.assign(p * g), [(ws[0], 2.0), (ws[1], 3.0)]))


def keyed(ws: Variables) -> None:
    for name, p in dict(zip("ab", ws, strict=True)).items():
        p.assign(p + (name == "b"))


def written_by_a_ufunc(ws: Variables) -> None:
    for p, g in zip(ws, [1.0, 2.0], strict=True):
        np.subtract(p, g, out=p)


def many(ws: Variables) -> None:
    for k, p in enumerate(ws * 10):
        p.assign(p + k)


def read_later(ws: Variables) -> Any:
    same = list(ws)
    ws[0].assign(ws[0] + 5)
    return same[0] * 1


def summed(ws: Variables) -> Any:
    return sum(ws), functools.reduce(operator.add, ws), [*itertools.accumulate(ws)][-1]


PROGRAMS = [zipped, assigned, numbered, reversed_, copied, next_, sorted_, filtered, mapped,
            by_itertools, keyed, written_by_a_ufunc, many, read_later, summed]


def after(call: Callable[..., Any], *given: Variables) -> Iterator[np.ndarray]:
    """The results of two calls and the state after them."""
    ws = WS
    for value, w in zip(([1.0, 4.0, 2.0], [3.0, 2.0, 1.0]), ws, strict=True):
        w.assign(np.array(value))
    for _ in range(2):
        result = call(*given)
        for part in result if isinstance(result, tuple) else [result]:
            yield np.asarray(part, float)
        yield from (w.numpy() for w in ws)
        ws[1].assign(ws[1] * 0.5)


WS = [fusec.Variable(np.zeros(3)), fusec.Variable(np.zeros(3))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_argument", [False, True], ids=["known", "given"])
def test_writes_reach_the_variable(program: Callable[..., Any], is_argument: bool) -> None:
    given = [WS] if is_argument else []
    plain = program if is_argument else functools.partial(program, WS)
    compiled = fusec.jit(program if is_argument else lambda: program(WS))
    for got, want in zip([*after(compiled, *given)], [*after(plain, *given)], strict=True):
        np.testing.assert_array_equal(got, want)
