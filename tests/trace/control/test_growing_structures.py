"""Loops whose variables hold the same parts over and over: an error that names the loop, in time
and memory that do not grow with the number of iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError
from fusec.trace.guards.growing_structures import outline, places_and_items

X = np.ones(3)


def by_fori_loop(x: Any) -> Any:
    return fusec.fori_loop(0, 40, lambda i, c: (c, c), x)


def by_for(x: Any) -> Any:
    c = [x]
    for i in range(50):
        c = [c, {"a": c, "b": i}]
    return c


def by_while(x: Any) -> Any:
    n, c = 40, x
    while n > 0:
        c = (c, c)
        n -= 1
    return c


def over_letters(x: Any) -> Any:
    c = x
    for _ in "abcdefghijklmnopqrstuvwxyzabcdefghijkl":
        c = (c, x, c)
    return c


def as_fibonaccis_numbers(x: Any) -> Any:
    a, b = x, x
    for _ in range(60):
        a, b = b, (a, b)
    return b


def every_third_time(x: Any) -> Any:
    c = x
    for k in range(400):
        if k % 3 == 0:
            c = (c, c)
    return c


LOOPS = (by_fori_loop, by_for, by_while, over_letters, as_fibonaccis_numbers, every_third_time)


@pytest.mark.parametrize("program", LOOPS, ids=lambda f: f.__name__)
def test_the_error_names_the_loop_and_the_structure(program) -> None:
    with pytest.raises(UnsupportedError) as error:
        fusec.jit(program)(X)
    text = str(error.value)
    variable = "value" if program is by_fori_loop else "b" if "fib" in program.__name__ else "c"
    assert f"a loop whose variable {variable} holds the same parts over and over" in text
    assert "iterations: " in text and "structure: " in text and "cure: " in text
    loop = "fori_loop(" if program is by_fori_loop else "while " if program is by_while else "for "
    assert loop in text.rpartition("  at ")[2]


def test_a_result_that_was_made_without_a_loop() -> None:
    @fusec.jit
    def f(x):
        c = (x,) * 100
        c = (c,) * 100
        c = (c,) * 100
        return (c,) * 100

    with pytest.raises(UnsupportedError, match="a result that holds the same parts over and over"):
        f(X)


def test_what_is_large_without_repeating_itself_is_no_error() -> None:
    @fusec.jit
    def f(x):
        items, rows = [], [x[0], x[1]]
        for _ in "abcdefghijklmnopqrst":
            items.append(x * len(items))
            rows = [*rows, rows[0]]
        return items, rows, fusec.fori_loop(0, 8, lambda i, c: (c, c), x)

    got, want = f(X), f.python_function(X)
    assert [len(part) for part in got] == [len(part) for part in want]
    np.testing.assert_array_equal(got[0], want[0])


def test_structures_are_measured_without_going_over_them() -> None:
    c: Any = 1.0
    for _ in range(200):
        c = (c, c)
    assert places_and_items(c) == (2**200, 400)
    assert places_and_items([{"a": (1, 2)}, [], (3,)]) == (3, 7)
    itself: list[Any] = [1, 2]
    itself.append(itself)
    assert places_and_items(itself)[1] == 3
    assert outline([(1, 2, 3, 4), {"a": 5}]) == "[(., ., ., ...), {.}]"
