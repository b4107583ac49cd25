"""`functools` around a program's functions: caches, partial methods, dispatch, wrapping objects."""

from __future__ import annotations

import array
import functools
from collections import UserList, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import ConcreteValueError, UnsupportedError

X = np.linspace(0.1, 2.0, 12)


class Grid:
    def __init__(self, k: float) -> None:
        self.k = k

    @functools.lru_cache  # noqa: B019
    def points(self, n: int) -> Any:
        return np.arange(n) * self.k

    @functools.cache  # noqa: B019
    def constant(self) -> float:
        return 3.0 * self.k

    def shifted(self, x: Any) -> Any:
        return x + self.points(12) * self.constant()

    def scaled(self, k: float, x: Any) -> Any:
        return x * k if x[0] > 0 else x

    doubled = functools.partialmethod(scaled, 2.0)

    @functools.singledispatchmethod
    def told(self, x: Any) -> Any:
        return x + 1

    @told.register(int)
    def _(self, x: int) -> Any:
        return x + 100

    def both(self, x: Any) -> Any:
        return self.told(x) + self.told(1) + self.doubled(x)


@functools.lru_cache
def table(n: int, *, first: float = 0.0) -> dict[str, Any]:
    return {"n": n, "first": first}


class Wrapping:
    """A callable object around a function, bound like one."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)


class Wrapped:
    @Wrapping
    def chosen(self, x: Any) -> Any:
        return x * 3 if x[0] > 0 else x

    def run(self, x: Any) -> Any:
        return self.chosen(x)


def cached_of_an_object_made_here(x: Any) -> Any:
    return Grid(2.0).shifted(x)


@pytest.mark.parametrize("f", [
    Grid(2.0).shifted, Grid(1.5).both, Grid(2.0).doubled, Wrapped().run, Wrapped.chosen.__get__(
        Wrapped(), Wrapped), cached_of_an_object_made_here,
    lambda x: x * table(3)["n"] + table(3, first=2.0)["first"],
])
def test_as_in_numpy(f: Callable[..., Any]) -> None:
    compiled = fusec.jit(f)
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), f(X), rtol=1e-15)


def test_the_cache_is_asked_at_each_call() -> None:
    grid = Grid(2.0)
    f = fusec.jit(grid.shifted)
    np.testing.assert_array_equal(f(X), grid.shifted(X))
    grid.points(12)[:] = 7
    np.testing.assert_array_equal(f(X), grid.shifted(X))
    grid.k = 3.0
    np.testing.assert_array_equal(f(X), grid.shifted(X))  # which the cache still answers
    assert f.trace_count == 1
    Grid.points.cache_clear()
    Grid.constant.cache_clear()
    np.testing.assert_array_equal(f(X), grid.shifted(X))


def test_what_a_cache_cannot_look_up() -> None:
    @functools.cache
    def twice(x: Any) -> Any:
        return x * 2

    with pytest.raises(TypeError, match="unhashable type"):
        fusec.jit(lambda x: twice(x))(X)
    with pytest.raises(ConcreteValueError, match=r"the cache of .*twice"):
        fusec.jit(lambda x: twice(x))(2.0)
    assert fusec.jit(lambda x: twice(x), static="x")(2.0) == 4.0
    assert twice.cache_info().currsize == 1  # no traced value


def test_an_object_that_the_program_changed() -> None:
    grid = Grid(2.0)

    def f(x: Any) -> Any:
        grid.k = x[0]
        return grid.points(12) + x

    with pytest.raises(UnsupportedError, match="whose results are cached"):
        fusec.jit(f)(X)


SEQUENCES: tuple[Any, ...] = (
    range(12), deque(range(12)), array.array("d", range(12)), UserList(range(12)),
    list(range(12)), tuple(range(12)),
)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("f", [
    lambda x, s: x + s, lambda x, s: s - x, lambda x, s: x[3] * s if type(s) is range else x * s,
    lambda x, s: x == s, lambda x, s: x != s, lambda x, s: x < s, lambda x, s: s >= x,
    lambda x, s: x @ s, lambda x, s: np.add(x, s),
])
def test_sequences_beside_arrays(f: Callable[..., Any], sequence: Any) -> None:
    def called(x: Any) -> Any:
        return f(x, sequence)

    for _ in range(2):
        np.testing.assert_array_equal(fusec.jit(called)(X), called(X), strict=True)


def test_sequences_beside_python_numbers() -> None:
    with pytest.raises(TypeError, match="'float' and 'range'"):
        fusec.jit(lambda s: s + range(3))(2.0)


def given(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator whose wrapper has parameters of its own."""
    @functools.wraps(f)
    def wrapper(x: Any, k: Any = 2.0) -> Any:
        return f(x, k, flag=False)

    return wrapper


@given
def scaled_by(x: Any, k: Any = 5.0, flag: bool = True, *, other: int = 3) -> Any:
    return x * k if flag else x - k


def test_a_wrapper_with_other_parameters() -> None:
    f = fusec.jit(scaled_by)
    np.testing.assert_array_equal(f(X), scaled_by(X))
    np.testing.assert_array_equal(f(X, k=3.0), scaled_by(X, k=3.0))


def test_constants_decide_and_or() -> None:
    def f(x: Any, mode: str) -> Any:
        if x.any() and mode == "drop":
            x = x[x > 1]
        if x.all() or mode != "drop":
            y: Any = 3
        else:
            y = "text"
        return x * y

    np.testing.assert_array_equal(fusec.jit(f)(X, "keep"), f(X, "keep"))
