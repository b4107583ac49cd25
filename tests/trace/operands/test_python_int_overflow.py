"""Python ints that the run computes: those beyond 64 bits raise; small steps cost nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

LEAST, LARGEST = -(2**63), 2**63 - 1


def tripled(x: Any, n: int) -> Any:
    r = 1
    for _ in range(n):
        r *= 3
    return r


def fibonacci(x: Any, n: int) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def doubled_by_shifts(x: Any, n: int) -> Any:
    r = 1
    for _ in range(n):
        r <<= 1
    return r


def in_branches(x: Any, n: int) -> Any:
    r = 1
    for i in range(n):
        if x[i % 3] > 0:
            r *= 5
        else:
            r -= 1
    return r


def digits_in_a_while(x: Any, n: int) -> Any:
    r = 1
    while r < x[0]:
        r = r * 10 + 1
    return r * r


def product(x: Any, n: int) -> Any:
    return int(x[0]) * int(x[1])


def square(x: Any, n: int) -> Any:
    return int(x[0]) ** 2


def cube(x: Any, n: int) -> Any:
    return int(x[0]) ** 3


def added(x: Any, n: int) -> Any:
    return int(x[0]) + int(x[1])


def subtracted(x: Any, n: int) -> Any:
    return int(x[0]) - int(x[1])


def shifted(x: Any, n: int) -> Any:
    return int(x[0]) << abs(int(x[2])) % 128


def divided(x: Any, n: int) -> Any:
    return int(x[0]) // int(x[1])


def of_one(x: Any, n: int) -> Any:
    k = int(x[0])
    return (-k, abs(k), k + 1, k - 1, 7 - k, k * 7, -7 * k, k * -1, k // -1, k % 7)


def summed(x: Any, n: int) -> Any:
    return sum([int(v) for v in x])


def summed_by_hand(x: Any, n: int) -> Any:
    s = 0
    for v in x:
        s += int(v) * int(v)
    return s


def of_numbers(x: Any, n: int) -> Any:
    return int(x[0] * 1e18), round(x[0]), math.floor(x[0])


def hashed(x: Any, n: int) -> Any:
    h = 5381
    for v in x:
        h = (h * 33 + int(v)) % 1000003
    return h


def counted(x: Any, n: int) -> Any:
    c = 0
    for i in range(n):
        if x[i % 3] > 0:
            c += 1
    return c


PROGRAMS = [tripled, fibonacci, doubled_by_shifts, in_branches, digits_in_a_while, product, square,
            cube, added, subtracted, shifted, divided, of_one, summed, summed_by_hand, of_numbers,
            hashed, counted]
ROWS = [[1.0, 2.0, 3.0], [2.0, 3.0, -4.0], [4e9, 1e18, 9e18], [3037000499.0, -3037000500.0, 63.0],
        [-(2.0**62), -(2.0**62), 1.0], [2.0**62, 2.0**62, 0.0], [2.0**52, 2.0**11, 10.0],
        [-(2.0**52), 2.0**11, 11.0], [-2097152.0, -1.0, 42.0], [2097151.0, 1.0, 42.0],
        [1e30, 5.0, 6.0], [9223372036854774784.0, 1024.0, 1.0], [0.0, -1.0, 70.0]]


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_python_or_overflow(program: Callable[..., Any]) -> None:
    """Ints on the way to the result may be larger than it."""
    jitted = fusec.jit(program)
    for row in ROWS:
        for n in (60, 41, 7, 39, 93, 63, 27, 62, 64):
            x = np.array(row)
            want = np.array(program(x, n), object)
            fits = all(LEAST <= int(v) <= LARGEST for v in want.ravel())
            try:
                got = np.array(jitted(x, n), object)
            except OverflowError as error:
                assert "64 bits" in str(error)
                assert __file__ in error.__notes__[0]
                assert not fits or max(map(abs, row)) >= 2.0**62, (row, n)
            else:
                assert np.array_equal(got, want), (row, n)


def test_the_line_and_the_cure() -> None:
    jitted = fusec.jit(tripled)
    assert jitted(np.zeros(3), 60) == 3**60  # which Python knows
    with pytest.raises(OverflowError, match=r"np\.int64\(n\)") as raised:
        jitted(np.zeros(3), 41)
    assert "r *= 3" in raised.value.__notes__[0]


def test_numpy_integers_wrap() -> None:
    def f(x: Any, n: int) -> Any:
        r = np.int64(1)
        for _ in range(n):
            r = r * np.int64(3)
        return r

    jitted = fusec.jit(f)
    with np.errstate(over="ignore"):
        for n in (60, 41, 10):
            assert jitted(np.zeros(3), n) == f(np.zeros(3), n)


def checks_in(program: Callable[..., Any], *args: Any) -> int:
    jitted = fusec.jit(program)
    jitted(*args)
    return str(jitted.traces[0].graph).count("64 bits")


def counts_and_indexes(x: Any) -> Any:
    count = last = 0
    k = 2
    total = 0
    for i in range(len(x)):
        k = (k * 3 + 1) % 20
        if x[i] > 0:
            count += 1
            last = i
        elif x[i - 1] < 0:
            count -= 2
        total += i % 7
    left = count
    while left > 0:
        left -= 1
        k += 3
    return count, last, k, total


def test_small_steps_are_not_checked() -> None:
    """Counters of loops, of branches in them, and numbers that a remainder keeps small."""
    x = np.random.default_rng(0).normal(size=50)
    assert checks_in(counts_and_indexes, x) == 0
    assert fusec.jit(counts_and_indexes)(x) == counts_and_indexes(x)
