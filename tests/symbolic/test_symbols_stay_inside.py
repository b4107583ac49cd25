"""Symbolic numbers are seen by the trace alone: not by caches, keys, NumPy's C code, or handlers of
exceptions that the number itself would not have caused."""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

SIZES = (5, 8, 13, 8, 21, 5)


class Weights:
    scale = 2.0

    @functools.lru_cache  # noqa: B019 (which is what is tested)
    def of(self, n: int) -> np.ndarray:
        return np.arange(n) * self.scale


WEIGHTS = Weights()


def caught(x: Any) -> Any:
    try:
        return x * np.random.RandomState(0).permutation(len(x)).sum()
    except ValueError:
        return x


def caught_where_too_short(x: Any) -> Any:
    try:
        return x[7]
    except IndexError:
        return x[0]


def suppressed(x: Any) -> Any:
    y = x
    with contextlib.suppress(IndexError):
        y = x * x[10]
    return y


def raised_and_caught(x: Any) -> Any:
    try:
        if len(x) > 7:
            raise ValueError(len(x))
    except ValueError as error:
        return x * error.args[0]
    return x


RETURNED: dict[str, Callable[[Any], Any]] = {
    "range": lambda x: range(len(x)),
    "list of ranges": lambda x: [range(1, x.size, 2)],
    "cached": lambda x: x * WEIGHTS.of(len(x)),
    "caught": caught, "short": caught_where_too_short, "suppressed": suppressed,
    "raised": raised_and_caught,
}


@pytest.mark.parametrize("function", RETURNED.values(), ids=list(RETURNED))
def test_results(function: Callable[[Any], Any]) -> None:
    jitted = fusec.jit(function)
    for n in SIZES:
        got, want = jitted(np.arange(1.0, n + 1)), function(np.arange(1.0, n + 1))
        assert type(got) is type(want) and repr(got) == repr(want)


def count(state: Any, x: Any) -> None:
    state.update([len(x), 3])


def group(state: Any, x: Any) -> None:
    state.setdefault(len(x), []).append(x.shape)


def put(state: Any, x: Any) -> None:
    state[0] = len(x)


def collect(state: Any, x: Any) -> None:
    state.append(range(len(x)))


@pytest.mark.parametrize(("change", "make"), [
    (count, collections.Counter), (group, dict), (put, lambda: np.array([None], object)),
    (collect, list)], ids=["counter", "setdefault", "array of objects", "list of ranges"])
def test_state(change: Callable[[Any, Any], None], make: Callable[[], Any]) -> None:
    eager, own = make(), make()

    @fusec.jit
    def jitted(x: Any) -> Any:
        change(own, x)
        return x * 2

    for n in SIZES:
        change(eager, np.ones(n))
        jitted(np.ones(n))
        assert repr(own) == repr(eager)


DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "order": lambda rng, x: (rng.normal(), rng.permutation(len(x))),
    "rows": lambda rng, x: rng.permutation(x),
    "each": lambda rng, x: rng.permuted(x),
    "poisson": lambda rng, x: rng.poisson(x),
    "dirichlet": lambda rng, x: rng.dirichlet(x, 2),
    "choice": lambda rng, x: rng.choice(x, 3, p=x / x.sum()),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_random_numbers(draw: Callable[[Any, Any], Any]) -> None:
    eager, own = np.random.default_rng(3), np.random.default_rng(3)
    jitted = fusec.jit(lambda x: draw(own, x))
    for n in SIZES:
        x = np.arange(1.0, n + 1)
        for got, want in zip(jitted(x), draw(eager, x), strict=True):
            np.testing.assert_array_equal(got, want)


def test_draws_for_arrays_share_a_trace() -> None:
    rng = np.random.default_rng(0)
    jitted = fusec.jit(lambda x: rng.permutation(x))
    for n in SIZES:
        jitted(np.ones(n))
    assert jitted.trace_count == 1


def test_a_range_of_data_is_refused_by_name() -> None:
    with pytest.raises(fusec.UnsupportedError, match=r"returning a .*[Rr]ange that holds values"):
        fusec.jit(lambda x: range(int(x[0])))(np.ones(3))
