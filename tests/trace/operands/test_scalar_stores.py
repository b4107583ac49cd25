"""NumPy scalars stored into arrays of integers, and Python ints into small ones, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import check

import fusec
from fusec.errors import ConcreteValueError

KINDS = ["i1", "i2", "i4", "i8", "u1", "u8"]
NUMBERS: list[Any] = [
    np.nan, np.inf, -np.inf, 1e30, -5.5, 127.9, 128.0, -128.9, -129.0, 2.0**63, -2.0**63, 3e9]


def at(a: Any, b: Any) -> Any:
    a[0] = b[0]
    return a


def part(a: Any, b: Any) -> Any:
    a[0:1] = b[0]
    return a


def whole(a: Any, b: Any) -> Any:
    a[...] = b[0]
    return a


def filled(a: Any, b: Any) -> Any:
    a.fill(b[0])
    return a


def looped(a: Any, b: Any) -> Any:
    for i in range(len(a)):
        a[i] = b[0]
    return a


def masked(a: Any, b: Any) -> Any:
    a[a == 0] = b[0]
    a[[0]] = b[0]
    return a


@pytest.mark.repeats
@pytest.mark.parametrize("program", [at, part, whole, filled, looped])
@pytest.mark.parametrize("dtype", KINDS)
def test_floats(dtype: str, program: Any) -> None:
    for number in NUMBERS:
        if dtype[0] == "u" and not -1 < number < 256:
            continue  # what a cast gives is of the processor's choice
        check(program, np.zeros(2, dtype), np.array([number]))


@pytest.mark.repeats
@pytest.mark.parametrize("program", [at, part, filled, looped, masked])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_integers(source: str, dtype: str, program: Any) -> None:
    info = np.iinfo(source)
    for number in (info.min, info.max, 100):
        check(program, np.zeros(2, dtype), np.array([number], source))


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8"])
def test_ints_of_python_made_of_data(dtype: str) -> None:
    def stored(o: Any, a: Any) -> Any:
        for i in range(2):
            o[i] = int(a[i])
        o[0] = min(255, int(a[0]) * 2)
        return o + int(a[1])

    def clamped(o: Any, a: Any) -> Any:
        for i in range(2):
            v = int(a[i]) + 100
            o[i] = 255 if v > 255 else v
        return o

    for numbers in ([20, 3], [200, 3], [300, 3], [-3, 3]):
        for program in (stored, clamped):
            check(program, np.zeros(2, dtype), np.array(numbers))


@pytest.mark.parametrize("program", [
    lambda p: 1 // int(p[0]), lambda p: 1 % int(p[0]), lambda p: 1 / int(p[0]),
    lambda p: (1 // int(p[0]), 2)[1], lambda p: divmod(7, int(p[0])),
    lambda p: 1 << int(p[0]), lambda p: int(p[0]) >> int(p[1])])
def test_ints_of_python_that_raise(program: Any) -> None:
    for numbers in ([0, 1], [2, 1], [-3, -1]):
        check(program, np.array(numbers))


def test_pythons_floats_of_data() -> None:
    def stored(a: Any, b: Any) -> Any:
        a[1] = float(b[0])
        a[:2] = float(b[0])
        return a

    for dtype in KINDS:
        for number in (np.nan, np.inf, 300.7, 3e9, 1e30, 5.5, *([] if dtype[0] == "u" else [-5.5])):
            check(stored, np.zeros(3, dtype), np.array([number]))


@pytest.mark.parametrize("program", [
    lambda x: round(float(x[0])), lambda x: round(x[0]), lambda x: math.floor(x[0]),
    lambda x: (math.ceil(float(x[0])), 1), lambda x: math.trunc(x[0])])
def test_floats_that_are_no_ints(program: Any) -> None:
    for number in (2.5, -2.5, np.nan, np.inf, -np.inf):
        check(program, np.array([number]))
    with pytest.raises(OverflowError, match="into 64 bits"):
        fusec.jit(program)(np.array([1e19]))


def test_lists_are_repeated_by_pythons_ints_alone() -> None:
    with pytest.raises(ConcreteValueError):
        fusec.jit(lambda a: [0.0] * a[0])(np.array([3, 4]))
    check(lambda a: [0.0] * np.int64(3) + list(a) * np.int8(2), np.array([3, 4]))
    check(lambda n: np.int8(2) * [1, n], 5)


def test_ranges_from_numbers_of_numpy() -> None:
    def program(a: Any) -> Any:
        total = 0
        for i in range(np.int8(3), a[0]):
            total += i
        return total

    check(program, np.array([127], np.int8))


@pytest.mark.parametrize("dtype", KINDS)
def test_numbers_of_data_in_lists(dtype: str) -> None:
    def stored(y: Any, a: Any, number: Any) -> Any:
        y[:] = [number(a[0]), 1, 2]
        y[1:] = number(a[0]), 1
        return y, np.array([[number(a[0]), 1]], y.dtype)

    for number in (int, float, lambda x: x):
        for value in (100, 250, -1) if number is not float else (100, 7.5):
            check(lambda y, a, n=number: stored(y, a, n), np.zeros(3, dtype), np.array([value]))
    check(lambda y, a: stored(y, a, lambda x: x), np.zeros(3, "i8"), np.array([np.nan]))
