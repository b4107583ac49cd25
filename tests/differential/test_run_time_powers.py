"""``x ** p`` with an exponent that the run decides: NumPy's shortcuts, bit for bit."""

from __future__ import annotations

import time

import numpy as np
import pytest
from arrays import ordinary, specials
from harness import check
from tolerance import Ulp

import fusec
from fusec.trace.facts import this_numpy

EXPONENTS = (2.0, 0.5, -1.0, 1.0, 0.0, 3.0, -0.5, 1.7, np.nan, np.inf, -2.0)
AS_NUMPY_HAS_IT = (2.0, 0.5, -1.0, 1.0, 0.0)
KINDS = {
    "float": lambda dtype, p: p,
    "scalar": lambda dtype, p: np.dtype(dtype).type(p),
    "rank 0": lambda dtype, p: np.array(p, dtype),
    "float64 scalar": lambda dtype, p: np.float64(p),
}


def power(x, p):
    return x**p


def refused(x, exponent):
    """Where NumPy's operator looks at wider scalars, they must be known while tracing."""
    return this_numpy.OPERATOR_KNOWS_SCALARS and (
        type(exponent) is not float and np.result_type(x, exponent) != x.dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "c16"])
def test_every_exponent_in_one_trace(dtype, kind):
    jitted = fusec.jit(power)
    for p in EXPONENTS:
        exponent = KINDS[kind]("f8" if dtype == "c16" else dtype.replace("i", "f"), p)
        x = ordinary(dtype, 70) if dtype == "c16" else specials(dtype)
        if refused(x, exponent):
            with pytest.raises(fusec.ConcreteValueError):
                jitted(x, exponent)
            return
        if dtype == "c16" and this_numpy.OPERATOR_KNOWS_SCALARS:
            # This NumPy's operator divides; by multiplying a zero part may have the other sign.
            np.testing.assert_allclose(jitted(x, exponent), x**exponent, rtol=1e-14)
            continue
        check(power, x, exponent, jitted=jitted, tolerance=Ulp(ulp=2.0, factor=2.0))
    assert jitted.trace_count == 1


@pytest.mark.parametrize("fp", ["contract", "strict"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_shortcuts_have_numpy_s_bits(dtype, kind, fp):
    jitted = fusec.jit(power, fp=fp)
    x = np.concatenate([specials(dtype), ordinary(dtype, 1000)])
    for p in AS_NUMPY_HAS_IT:
        if refused(x, KINDS[kind](dtype, p)):
            return  # see above
        check(power, x, KINDS[kind](dtype, p), jitted=jitted)
        check(power, x[::3], KINDS[kind](dtype, p), jitted=jitted)


def test_exponents_that_are_ints():
    jitted = fusec.jit(power)
    x = ordinary("f8", 200)
    for p in (5, 7, 2, -1, 0, 1, 3):
        np.testing.assert_allclose(jitted(x, p), x**p, rtol=4e-15)
    np.testing.assert_array_equal(jitted(x, 2), x * x)
    assert jitted.trace_count <= 2


def test_in_loops_and_with_sums():
    def program(x, p, n):
        total = np.zeros_like(x)
        for k in range(n):
            total = total + (x + k) ** p
            p = p * 0.5 if k % 2 else p
        return total, (x**p).sum(axis=-1), (x**p).sum(), (x**p).max(axis=0)

    x = np.abs(ordinary("f8", 40, 30)) + 0.1
    for p in (2.0, 0.5, -1.0, 1.3):
        check(program, x, p, 60, tolerance=Ulp(ulp=64.0, factor=16.0))


def test_an_exponent_for_each_row():
    def program(x, p):
        return x ** p[:, None], (x ** p[:, None]).sum(axis=1), x ** p[0], np.power(x, p[1])

    p = np.array([2.0, 0.5, -1.0, 1.5])
    check(program, np.abs(ordinary("f8", 4, 50)) + 0.1, p, tolerance=Ulp(ulp=8.0))


@pytest.mark.alone
def test_only_the_side_that_is_taken_is_computed():
    @fusec.jit
    def either(x, flag):
        return np.where(flag, np.log1p(np.exp(np.sin(x)) ** 1.234), x)

    def seconds(flag):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            either(x, flag)
            times.append(time.perf_counter() - start)
        return min(times)

    x = np.linspace(0, 1, 200_000)
    np.testing.assert_array_equal(either(x, np.False_), x)
    np.testing.assert_allclose(
        either(x, np.True_), np.log1p(np.exp(np.sin(x)) ** 1.234), rtol=1e-14)
    with fusec.config.override(num_threads=1):
        assert seconds(np.False_) < 0.4 * seconds(np.True_)


def test_a_side_shares_what_others_need():
    def program(x, flag):
        u = np.exp(x)
        v = np.sin(u)
        chosen = np.where(flag, np.cos(v) + u, np.where(u.ndim > 0, np.tanh(v), u))
        other = np.where(np.logical_not(flag), np.cos(v), u)
        return chosen, v, np.where(flag, np.log(u + 1), other)

    for flag in (np.True_, np.False_):
        check(program, ordinary("f8", 37, 5), flag, tolerance=Ulp(ulp=8.0))
        check(program, ordinary("f4", 5, 37).T, flag, tolerance=Ulp(ulp=8.0))


def test_failed_checks_inside_of_a_side_are_found():
    def program(x, index, flag):
        return np.where(flag, np.exp(x[index]), np.sin(x[index + 1]))

    x, index = ordinary("f8", 10), np.array([1, 2, 8])
    check(program, x, index, np.True_, tolerance=Ulp())
    check(program, x, index + 1, np.True_)
