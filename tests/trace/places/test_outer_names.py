"""Variables of outer scopes that a program assigns: read at each call, assigned after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

COUNT = 0
WEIGHT = np.ones(3)
LAST: Any = None
CACHE: Any = None


def reset() -> None:
    global COUNT, WEIGHT, LAST, CACHE
    COUNT, WEIGHT, LAST, CACHE = 0, np.ones(3), None, None


def state() -> Any:
    return COUNT, np.array(WEIGHT), LAST if LAST is None else np.array(LAST)


def counts(x: np.ndarray) -> Any:
    global COUNT
    COUNT = COUNT + 1
    return x * COUNT


def counts_in_a_loop(x: np.ndarray) -> Any:
    global COUNT
    s = 0.0
    for v in x:
        COUNT += 1
        s += v * COUNT
    return s


def _helper(v: Any) -> Any:
    global COUNT
    COUNT += 2
    return v * COUNT


def _reads() -> int:
    return COUNT


def helper_in_a_loop(x: np.ndarray) -> Any:
    s = 0.0
    for v in x:
        s += _helper(v) + _reads()
    return s, COUNT


def helper_in_a_branch(x: np.ndarray) -> Any:
    if x[0] > 1.5:
        _helper(x)
    return x + COUNT


def binds_an_array(x: np.ndarray) -> Any:
    global WEIGHT, LAST
    WEIGHT = WEIGHT * 0.5 + x[:3]
    LAST = x[0]
    return WEIGHT.sum()


def fills_a_cache(x: np.ndarray) -> Any:
    global CACHE
    if CACHE is None:
        CACHE = np.arange(4.0)
    return x[:4] * CACHE


@pytest.mark.parametrize("program", [
    counts, counts_in_a_loop, helper_in_a_loop, helper_in_a_branch, binds_an_array, fills_a_cache,
])
def test_global_variables(program: Callable[..., Any]) -> None:
    calls = [np.arange(40.0) + k for k in range(4)]
    reset()
    want = [(program(x), state()) for x in calls]
    reset()
    compiled = fusec.jit(program)
    got = [(compiled(x), state()) for x in calls]
    reset()
    for (a, before), (b, after) in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
        for one, other in zip(before, after, strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)
    assert compiled.trace_count <= 2  # None becomes an array


def closures() -> tuple[Callable[..., Any], Callable[..., Any]]:
    count, total = 0, 0.0

    def add(v: Any) -> Any:
        nonlocal count, total
        count += 1
        total = total * 0.5 + v
        return count * v

    def get() -> Any:
        return count, total

    return add, get


def test_variables_of_enclosing_functions() -> None:
    def program(x: np.ndarray, add: Callable[..., Any]) -> Any:
        s = 0.0
        for v in x:
            s += add(v)
        if x[0] > 1:
            add(x[1])
        return s

    x, results = np.arange(30.0), []
    for compiled in (program, fusec.jit(program, static=["add"])):
        add, get = closures()
        results.append([(float(compiled(x + k, add)), *map(float, get())) for k in range(4)])
    assert results[0] == results[1]


def test_an_error_of_the_program_leaves_what_was_assigned() -> None:
    add, get = closures()

    def program(x: np.ndarray) -> Any:
        add(x[0])
        raise KeyError("no")

    with pytest.raises(KeyError):
        fusec.jit(program)(np.ones(3))
    assert get() == (1, 1.0)


def test_a_refusal_puts_them_back() -> None:
    add, get = closures()

    def program(x: np.ndarray) -> Any:
        add(x[0])
        return x.tobytes()

    with pytest.raises(fusec.FusecError):
        fusec.jit(program)(np.ones(3))
    assert get() == (0, 0.0)


def test_names_of_functions_inside_the_program() -> None:
    def program(x: np.ndarray) -> Any:
        count, path = 0, x[:2]

        def step(v: Any) -> None:
            nonlocal count, path
            if v > 0.5:
                count += 1
                path = path * 0.5 + v

        for v in x:
            step(v)
        while count < 100:
            step(x.max())
        return count, path

    x = np.random.default_rng(0).random(40)
    got, want = fusec.jit(program, fp="strict")(x), program(x)
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1], want[1])


def test_jitted_functions_with_variables_of_their_own() -> None:
    def made() -> Callable[..., Any]:
        count = 0

        @fusec.jit
        def program(x: np.ndarray) -> Any:
            nonlocal count
            count += 1
            return x * count

        return program

    one, other = made(), made()
    assert [one(np.ones(1))[0] for _ in range(3)] == [1, 2, 3]
    assert other(np.ones(1))[0] == 1
    assert one.trace_count == 1


def test_variables_that_hold_one_array_at_first() -> None:
    one = other = np.zeros(3)

    @fusec.jit
    def program() -> Any:
        nonlocal one, other
        one, other = one + 1, other + 2
        return one + other

    assert [program()[0] for _ in range(3)] == [3, 6, 9]
    assert (one[0], other[0]) == (3, 6)


def test_a_global_named_as_an_attribute_is_not_read() -> None:
    """In a notebook ``x`` is bound anew in many a cell: functions that read ``self.x`` are not
    traced again for that."""
    class Model:
        LAST = np.ones(3)

    model, program = Model(), fusec.jit(lambda model: model.LAST * 2)
    for n in range(4):
        globals()["LAST"] = np.ones(n)
        np.testing.assert_array_equal(program(model), np.full(3, 2.0))
    reset()
    assert program.trace_count == 1
