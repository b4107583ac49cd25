"""``round`` to digits and functions of ``math`` that no ufunc computes, against Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError


def same(got: Any, want: Any) -> bool:
    return type(got) is type(want) and repr(got) == repr(want)


@pytest.mark.parametrize("fp", ["contract", "strict"])
@pytest.mark.parametrize("digits", [0, 1, 2, 5, 14, 15, 22])
def test_round_to_digits(digits: int, fp: str) -> None:
    compiled = fusec.jit(lambda x: round(x, digits), fp=fp)
    source = random.Random(digits)
    numbers = [0.5, 2.5, 0.125, 2.675, 1.005, -0.0, -0.001, 1e300, math.inf, -math.inf,
               2.0**51 + 0.5, 4503599627370497.5, -58.472264123860896]
    for _ in range(300):
        numbers.append(source.uniform(-1000, 1000))
        numbers.append(source.uniform(-1, 1) * 10.0 ** source.randint(-25, 25))
        numbers.append(source.randint(-999, 999) / 8 * 10.0**-digits)  # many are half way
        numbers.append(float(f"{source.uniform(-50, 50):.{digits}f}5"))
    for x in numbers:
        assert same(compiled(x), round(x, digits)), (x, digits)
    assert math.isnan(compiled(math.nan))


def test_round_of_other_numbers() -> None:
    compiled = fusec.jit(lambda x: (round(x, 2), round(x, 0), round(x)))
    for x in (5, True, 1.23456):
        assert all(map(same, compiled(x), (round(x, 2), round(x, 0), round(x))))
    with pytest.raises(UnsupportedError, match="round of a Python number to -1 digits"):
        fusec.jit(lambda x: round(x, -1))(12.5)


@pytest.mark.parametrize("numbers", [(12, 18), (0, 5), (-4, 6), (0, 0), (np.int8(4), np.uint8(6))])
def test_common_divisors(numbers: tuple[Any, Any]) -> None:
    def f(a: Any, b: Any) -> Any:
        return math.gcd(a, b), math.lcm(a, b), math.gcd(a), math.gcd(a, b, 10), math.lcm(a, b, 3)

    assert all(map(same, fusec.jit(f)(*numbers), f(*numbers)))


@pytest.mark.parametrize("numbers", [(12.5, 3), (np.bool_(True), 3)])
def test_divisors_of_what_is_no_int(numbers: tuple[Any, Any]) -> None:
    try:
        want = math.gcd(*numbers)
    except TypeError as error:
        refusal = str(error)
    else:  # NumPy's booleans, which older ones take for indices
        assert fusec.jit(lambda a, b: math.gcd(a, b))(*numbers) == want
        return
    with pytest.raises(TypeError, match=refusal):
        fusec.jit(lambda a, b: math.gcd(a, b))(*numbers)


@pytest.mark.parametrize("numbers", [
    (1.0, 1.0 + 1e-10), (1.0, 1.1), (math.inf, math.inf), (math.inf, 1.0), (-math.inf, math.inf),
    (math.nan, math.nan), (0.0, 1e-12), (np.float32(1), 1.0), (1, 1), (3, 4)])
def test_close_numbers(numbers: tuple[Any, Any]) -> None:
    def f(a: Any, b: Any) -> Any:
        return (math.isclose(a, b), math.isclose(a, b, abs_tol=1e-9),
                math.isclose(a, b, rel_tol=0.2))

    assert all(map(same, fusec.jit(f)(*numbers), f(*numbers)))


def test_negative_tolerances() -> None:
    for tolerance in (-1e-9, -math.inf):
        with pytest.raises(ValueError, match="tolerances must be non-negative"):
            fusec.jit(lambda a, t: math.isclose(a, 2.0, rel_tol=t))(1.0, tolerance)
    with pytest.raises(ValueError, match="tolerances must be non-negative"):
        fusec.jit(lambda a: math.isclose(a, 2.0, abs_tol=-1))(1.0)


@pytest.mark.parametrize("x", [3.75, -2.25, 0.0, -0.0, 5, np.float64(2.5), 1e-310])
def test_parts_of_numbers(x: Any) -> None:
    found = fusec.jit(lambda x: (*math.modf(x), *math.frexp(x)))(x)
    assert all(map(same, found, (*math.modf(x), *math.frexp(x))))


PRODUCTS: list[Callable[..., Any]] = [
    lambda x: math.prod(x), lambda x: math.prod((x[0], 2, x[3])),
    lambda x: math.prod([x[0], x[1]], start=3), lambda x: math.prod(v + 1 for v in x),
    lambda x: math.prod(x[x > 1].shape), lambda x: math.prod([]) + x[0],
    lambda x: math.prod([x, x]),
]


@pytest.mark.parametrize("program", PRODUCTS)
def test_products(program: Callable[..., Any]) -> None:
    x = np.arange(1.0, 5.0)
    got, want = fusec.jit(program)(x), program(x)
    assert type(got) is type(want)
    np.testing.assert_array_equal(got, want)


def test_products_of_ints_of_any_size() -> None:
    f = fusec.jit(lambda n: math.prod([n, n]))
    assert (f(3), f(2**40)) == (9, 2**80)
