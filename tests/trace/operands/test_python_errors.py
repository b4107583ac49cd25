"""Errors of Python's own arithmetic for floats are raised by compiled code too."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

FLOATS = (0.0, -0.0, 1.0, -2.5, 3.0, 1000.0, math.inf, -math.inf, math.nan)


def divided(a: Any, b: Any) -> Any:
    return a / b


def floored(a: Any, b: Any) -> Any:
    return a // b


def remaining(a: Any, b: Any) -> Any:
    return a % b


def powered(a: Any, b: Any) -> Any:
    return a ** b


def math_power(a: Any, b: Any) -> Any:
    return math.pow(a, b)


def math_remainder(a: Any, b: Any) -> Any:
    return math.fmod(a, b)


def squared(a: Any) -> Any:
    return a ** 2


def inverse(a: Any) -> Any:
    return 1 / a


def root(a: Any) -> Any:
    return math.sqrt(a)


def logarithm(a: Any) -> Any:
    return math.log(a)


def shifted_logarithm(a: Any) -> Any:
    return math.log1p(a)


def exponential(a: Any) -> Any:
    return math.exp(a)


def hyperbolic(a: Any) -> Any:
    return math.cosh(a)


def sine(a: Any) -> Any:
    return math.sin(a)


def arc(a: Any) -> Any:
    return math.acos(a)


def area(a: Any) -> Any:
    return math.atanh(a)


def integral(a: Any) -> Any:
    return int(a)


def outcome(function: Callable[..., Any], arguments: tuple[float, ...]) -> Any:
    try:
        found = function(*arguments)
    except (ArithmeticError, ValueError, UnsupportedError) as error:
        return type(error).__mro__[-3], "" if sys.version_info >= (3, 14) else error.args[-1]
    return type(found), found


def same(function: Callable[..., Any], jitted: Callable[..., Any], *arguments: float) -> None:
    want, got = outcome(function, arguments), outcome(jitted, arguments)
    if want[0] is complex:  # what a result's type is cannot depend on data
        assert got[0] is not complex and "complex(x) ** y" in got[1]
    elif want[0] is float:
        np.testing.assert_allclose(got[1], want[1], rtol=1e-12, err_msg=str(arguments))
    else:
        assert got == want, arguments


@pytest.mark.parametrize("function", [
    divided, floored, remaining, powered, math_power, math_remainder])
def test_two_floats(function: Callable[..., Any]) -> None:
    jitted = fusec.jit(function)
    for a in FLOATS:
        for b in (*FLOATS, 0.5, -1.0):
            same(function, jitted, a, b)


@pytest.mark.parametrize("function", [
    squared, inverse, root, logarithm, shifted_logarithm, exponential, hyperbolic, sine, arc, area,
    integral])
def test_one_float(function: Callable[..., Any]) -> None:
    jitted = fusec.jit(function)
    for a in (*FLOATS, -1.0, 1e200):
        if function is not integral or not 2.0 ** 63 <= abs(a) < math.inf:
            same(function, jitted, a)


def test_in_native_loops() -> None:
    """The loop ends, arguments keep their values, and the error names the line."""
    def newton(x: float, out: np.ndarray) -> float:
        for i in range(100):
            x = x - (x * x + 1) / (2 * x)
            out[i] = x
        return x

    out = np.zeros(100)
    with pytest.raises(ZeroDivisionError, match="division") as found:
        fusec.jit(newton)(1.0, out)
    assert "x = x - (x * x + 1) / (2 * x)" in found.value.__notes__[0]
    assert not out.any()
    with pytest.raises(ZeroDivisionError):
        newton(1.0, out)


def test_complex_numbers() -> None:
    jitted = fusec.jit(divided)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        jitted(1j, 0j)
    assert fusec.jit(powered)(1.25 + 0.5j, 1.25 + 0.5j) == (1.25 + 0.5j) ** (1.25 + 0.5j)
    with pytest.raises(ZeroDivisionError, match="negative or complex power"):
        fusec.jit(powered)(0j, -1j)


def test_integers_beyond_64_bits_raise() -> None:
    with pytest.raises(OverflowError, match="into 64 bits"):
        fusec.jit(integral)(1e19)


def test_checks_are_part_of_kernels() -> None:
    """No call leaves native code for them."""
    def scaled(x: np.ndarray, dt: float, dx: float) -> Any:
        return x * (dt / dx ** 2)

    text = str(fusec.jit(scaled).concrete(np.ones(3), 1.0, 2.0).optimized_graph)
    assert text.count("Verify(") == 2 and " Check(" not in text


def test_numpys_scalars_only_warn() -> None:
    with np.errstate(all="ignore"):
        assert fusec.jit(divided)(np.float64(1), np.float64(0)) == np.inf
        assert np.isnan(fusec.jit(powered)(np.float64(-2), 0.5))


def test_what_is_refused_when_it_happens_names_the_line() -> None:
    with pytest.raises(UnsupportedError, match=r"complex\(x\) \*\* y(.|\n)*return a \*\* b"):
        fusec.jit(powered)(-2.0, 0.5)


def test_division_by_a_length_that_data_decides_is_checked_by_the_run() -> None:
    compiled = fusec.jit(lambda x: len(x[x > 0]) / len(x[x < 5]))
    assert compiled(np.arange(9.0)) == 8 / 5
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        compiled(np.arange(9.0) + 10)


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.complex128(2), np.True_, 2.0])
def test_lists_are_repeated_by_integers_only(number: Any) -> None:
    def written(x: Any) -> Any:
        items = [x, x]
        items *= x
        return items

    for program in (lambda x: [1.0, x] * x, lambda x: x * (x, 2), written):
        for run in (program, fusec.jit(program)):
            with pytest.raises(TypeError, match="can't multiply sequence by non-int of type"):
                run(number)


def unpacks_a_number(x):
    p, q = x.sum()
    return p + q


def unpacks_what_data_chose(x):
    p, *q = 1.0 if x[0] > 0 else x.sum()
    return p, q


def unpacks_items(x):
    return sum(p + q for p, q in x)


def lists_a_number(x):
    return [*x[0]]


@pytest.mark.parametrize("f", [
    unpacks_a_number, unpacks_what_data_chose, unpacks_items, lists_a_number])
@pytest.mark.parametrize("first", [2.0, -2.0])
def test_numbers_are_not_taken_apart(f, first):
    x = np.full(20, first)
    with pytest.raises(TypeError) as expected:
        f(x)
    with pytest.raises(TypeError, match=re.escape(str(expected.value))):
        fusec.jit(f)(x)


def test_too_few_items_to_take_apart():
    def f(x):
        p, q = x[x > 0]
        return p + q

    compiled = fusec.jit(f)
    for positive in (0, 1, 3):
        x = np.arange(1.0 - 3, 1.0 + positive)
        with pytest.raises(ValueError) as expected:
            f(x)
        with pytest.raises(ValueError, match=re.escape(str(expected.value))):
            compiled(x)


def test_slots_of_pythons_floats_are_refused_for_data() -> None:
    """They answer NotImplemented for stand-ins of numbers."""
    for fn in (lambda x: float.__mul__(2.0, x[0]), lambda x: (2.0).__add__(float(x[0]))):
        with pytest.raises(UnsupportedError, match=r"called with a value of data(.|\n)*2 \* x"):
            fusec.jit(fn)(np.ones(3))


@pytest.mark.parametrize("fn", [
    lambda x: np.concatenate([x, x], axis=False), lambda x: np.append(x, x, axis=False),
    lambda x: np.repeat(x, 2, axis=False), lambda x: np.squeeze(x[None], axis=False),
    lambda x: np.argmax(x, axis=False), lambda x: x.argmin(axis=np.True_)])
def test_bools_are_no_axes(fn: Callable[[Any], Any]) -> None:
    for f in (fn, fusec.jit(fn)):
        with pytest.raises(TypeError, match="an integer is required for the axis"):
            f(np.ones((2, 2)))


def test_an_object_is_no_exponent_of_ldexp() -> None:
    class Index:
        def __index__(self) -> int:
            return 1

    with pytest.raises(TypeError, match="Expected an int as second argument to ldexp"):
        fusec.jit(lambda o: math.ldexp(2.0, o))(Index())
