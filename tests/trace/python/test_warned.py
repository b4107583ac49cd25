"""``warnings.warn`` in compiled code: at each call plain Python's output, by its filters.
"""

# ruff: noqa: B028 (the place that is the default is what is looked at)

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from warnings import warn as imported

import numpy as np
import pytest

import fusec
from fusec.errors import ConcreteValueError, UnsupportedError

X = np.arange(3.0) + 1
CALLS = [X, X, -X, X, -X, -X, 1000 * X]


class Unusual(UserWarning):
    pass


def straight(x: Any) -> Any:
    warnings.warn("at each call")
    return x * 2


def negative(x: Any) -> Any:
    if x.min() < 0:
        warnings.warn("negative", RuntimeWarning)
    return x * 2


def sides(x: Any) -> Any:
    y = x * 2
    if x.min() < 0:
        imported("negative", Unusual)
    elif x.max() > 100:
        warnings.warn("large", category=Unusual, stacklevel=1)
        y = y + 1
    return y


def looped(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 1:
            total += x[i]
            warnings.warn(Unusual("large"))
        warnings.warn(f"element {i}")
    while total > 1:
        total = total / 2
        warnings.warn("halved", RuntimeWarning)
    return total


def _checked(x: Any) -> Any:
    if x.sum() < 0:
        warnings.warn("of the caller", stacklevel=2)
        warnings.warn("of its caller", stacklevel=3)
        warnings.warn("of nobody", stacklevel=99)
    return x


def of_callers(x: Any) -> Any:
    y = _checked(x) + 1
    return _checked(x - 1) + y


def number(x: Any) -> Any:
    warnings.warn(x.sum())
    return x


def caught(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("unheard")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("recorded")
    warnings.warn("heard")
    return x + len(found)


def before_an_error(x: Any) -> Any:
    warnings.warn("before")
    if x.min() < 0:
        warnings.warn("negative")
        raise ValueError("negative")
    return x


def before_an_index(x: Any) -> Any:
    warnings.warn("before")
    i = int(x[0])
    return x[i]


PROGRAMS = [straight, negative, sides, looped, of_callers, number, before_an_error,
            before_an_index]


def heard(program: Callable[..., Any], x: Any) -> tuple[Any, ...]:
    try:
        result = str(program(x))
    except (Warning, ValueError, IndexError) as error:
        result = type(error).__mro__[-4].__name__ + str(error).split("\n")[0]
    return (result,)


def all_heard(program: Callable[..., Any], action: Any) -> list[Any]:
    found: list[Any] = []
    warnings.onceregistry.clear()  # of the process: what other tests have heard once
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter(action)
        for x in CALLS:
            found.append(heard(program, x))
            found += [(str(r.message), r.category, r.filename, r.lineno) for r in records]
            records.clear()
    return found


@pytest.mark.parametrize("action", ["always", "default", "module", "once", "ignore", "error"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_python(program: Any, action: Any) -> None:
    compiled = fusec.jit(program)
    if action != "error":
        assert all_heard(compiled, action) == all_heard(program, action)
    assert all_heard(compiled, action) == all_heard(program, action)


@pytest.mark.parametrize("action", ["always", "ignore", "error"])
def test_caught_warnings(action: Any) -> None:
    """The block at each call would make Python forget shown warnings, which matters elsewhere.
    """
    assert all_heard(fusec.jit(caught), action) == all_heard(caught, action)


def test_values_of_the_run_are_no_text() -> None:
    @fusec.jit
    def sums(x: Any) -> Any:
        warnings.warn(f"sum {x.sum()}")
        return x

    with pytest.raises(ConcreteValueError, match="text is needed while sums is traced"):
        sums(X)


def test_caught_warnings_of_a_branch_are_refused() -> None:
    @fusec.jit
    def quiet(x: Any) -> Any:
        if x.sum() > 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.warn("unheard")
        return x

    with pytest.raises(UnsupportedError, match=r"catch the warnings of the whole call"):
        quiet(X)
