"""Lists, dicts and iterators changed by functions that `map`, `np.vectorize` and the like call: in
a loop of the graph each call finds what the one before has left."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import fusec


def summing() -> Callable[..., Any]:
    total = [0.0]

    def add(a: Any) -> Any:
        total[0] += a
        return total[0]

    return add


def in_a_default(x: Any) -> Any:
    def add(a: Any, memo: Any = [0.0]) -> Any:  # noqa: B006
        memo[0] += a
        return memo[0]

    return np.array(list(map(add, x)))


def in_a_partial(x: Any) -> Any:
    def add(total: Any, a: Any) -> Any:
        total[0] += a
        return total[0]

    return np.array(list(map(partial(add, [0.0]), x)))


def in_a_zip(x: Any) -> Any:
    return np.array([p * q for p, q in zip(map(summing(), x), x, strict=True)])


def enumerated(x: Any) -> Any:
    total = 0.0
    for k, v in enumerate(map(summing(), x)):
        total += k * v
    return total


def counted(x: Any) -> Any:
    numbers = itertools.count()
    return np.vectorize(lambda a: a * next(numbers), otypes=[float])(x)


def generated(x: Any) -> Any:
    def numbers() -> Iterator[float]:
        k = 0.0
        while True:
            yield k
            k += 1

    made = numbers()
    return np.vectorize(lambda a: a + next(made), otypes=[float])(x)


def appended(x: Any) -> Any:
    seen: list[Any] = []

    def place(a: Any) -> int:
        seen.append(a)
        return len(seen)

    return np.vectorize(place, otypes=[int])(x), len(seen)


def by_key(x: Any) -> Any:
    table: Any = defaultdict(float)

    def add(a: Any) -> Any:
        table["q"] += a
        return table["q"]

    return np.vectorize(add, otypes=[float])(x), table["q"]


def of_rows(x: Any) -> Any:
    add = summing()
    of_row = np.vectorize(lambda r: add(r.sum()), otypes=[float], signature="(n)->()")
    return of_row(np.stack([x] * len(x)))


def differences(x: Any) -> Any:
    last = [x[0]]

    def from_last(a: Any) -> Any:
        d = a - last[0]
        last[0] = a
        return d

    return np.vectorize(from_last, otypes=[float])(x)


PROGRAMS = [
    lambda x: np.array(list(map(summing(), x))), lambda x: sum(map(summing(), x)),
    lambda x: max(map(summing(), x)), lambda x: np.array(tuple(map(summing(), range(len(x))))),
    lambda x: np.frompyfunc(summing(), 1, 1)(x).astype(float),
    in_a_default, in_a_partial, in_a_zip, enumerated, counted, generated, appended, by_key,
    of_rows, differences]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [5, 40])
def test_each_call_finds_what_the_last_one_left(program: Any, size: int) -> None:
    x = np.arange(float(size))
    found, wanted = fusec.jit(program)(x), program(x)
    pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def test_gradients_go_through_the_state() -> None:
    x = np.arange(40.0)
    slope = fusec.grad(lambda x: np.vectorize(summing(), otypes=[float])(x).sum())(x)
    np.testing.assert_array_equal(slope, np.arange(40.0, 0, -1))


def test_lanes_do_not_forget_it() -> None:
    def f(r: Any) -> Any:
        return sum(map(summing(), r))

    x = np.random.default_rng(0).random((7, 40))
    np.testing.assert_allclose(fusec.vmap(f)(x), [f(r) for r in x], rtol=1e-14)
    shared = summing()
    with pytest.raises(fusec.UnsupportedError, match=r"(?s)which lanes share.*total\[0\] \+= a"):
        fusec.vmap(lambda r: sum(map(shared, r)))(x)
