"""Questions for the type of a number that is an int or a float, as data decides: refused.

Attributes that a number of Python's has not raise where it is one."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fusec

X = np.array([1.0, 2.0])


def of_a_branch(x, a):
    s = 3 if x[0] > a else 0.5
    return 1.0 if isinstance(s, float) else 2.0


def of_two_kinds_of_float(x, a):
    s = 3
    if x[0] > a:
        s = x[1]
    return 1.0 if type(s) is int else 2.0


def of_a_boolean(x, a):
    s = 3
    if x[0] > a:
        s = True
    return 1.0 if isinstance(s, bool) else 2.0


def of_a_sum(x, a):
    s = 0
    if x[0] > a:
        s = x[0]
    return isinstance(s + 1, int)


def of_a_loop(x, a):
    s = 0
    for i in range(40):
        if x[i % 2] > a:
            s = x[0]
    return isinstance(s, (int, np.integer))


def of_a_while(x, a):
    s = 0
    while x[0] > a:
        s = s + x[0]
        a = a + 1
    return isinstance(s, int)


def inside_a_loop(x, a):
    s = 0.5
    while x[0] > a:
        if isinstance(s, float):
            a += 10
        s = 1
        a += 0.25
    return a


class Level:
    def __init__(self, level):
        self.level = level

    def raised(self, c):
        if c > self.level:
            self.level = c
        return self.level


def of_an_attribute(x, a):
    s = Level(3).raised(x[0] + a)
    return 1.0 if isinstance(s, float) else 2.0


@pytest.mark.parametrize("f", [
    of_a_branch, of_two_kinds_of_float, of_a_boolean, of_a_sum, of_a_loop, of_a_while,
    inside_a_loop, of_an_attribute])
@pytest.mark.parametrize("a", [-5.0, 1.5])
def test_data_decides(f, a):
    with pytest.raises(fusec.UnsupportedError, match="as data decides") as error:
        fusec.jit(f)(X, a)
    assert "type(s)" in str(error.value) or "isinstance(s" in str(error.value)


def always_float(x, a):
    s = 0
    if x[0] > a:
        s = x[0]
    return (isinstance(s * 0.5, float), isinstance(s / 2, float), isinstance(float(s), float),
            isinstance(x[1] * s, float), isinstance(int(s), int))


def of_one_kind(x, a):
    s = 3.0 if x[0] > a else 0.5
    for i in range(40):
        s = s + i
    return isinstance(s, float)


@pytest.mark.parametrize("f", [always_float, of_one_kind])
@pytest.mark.parametrize("a", [-5.0, 1.5])
def test_it_is_known_all_the_same(f, a):
    assert fusec.jit(f)(X, a) == f(X, a)


def mean_of_some(x):
    return sum(v for v in x if v > 0) / sum(1 for v in x if v > 0)


def mean_of_a_loop(x):
    total, count = 0, 0
    for v in x:
        if v > 0:
            total += v
            count += 1
    total /= count
    return total


def rest_of_a_branch(x):
    total = 0
    if x[0] > 0:
        total = x[0]
    return total // int(x[1]), total % 3, total / 2.0


def part_of_a_sum(x):
    return 1.0 / sum(v for v in x if v > 0)


@pytest.mark.parametrize("f", [mean_of_some, mean_of_a_loop, rest_of_a_branch, part_of_a_sum])
def test_division_by_zero_of_what_may_be_a_python_number(f):
    compiled = fusec.jit(f)
    for x in (np.array([2.0, 3.0, 5.0]), np.tile([1.0, -2.0], 20)):
        assert compiled(x) == f(x)
        nothing = x * 0.0
        with pytest.raises(ZeroDivisionError):
            f(nothing)
        with pytest.raises(ZeroDivisionError):
            compiled(nothing)


def summed(x):
    s = 0.0 if x[0] > 0 else x.sum()
    return s.sum()


def of_a_sum_of_both(x):
    s = 1 if x[0] > 0 else x.sum()
    s = -(s + 2)
    return s.item() + s.dtype.itemsize


def an_item(x):
    s = 0 if x[0] > 0 else x.sum()
    return s[()] + 1.0


def of_certain_kind(x):
    s = 0.0
    if x[0] > 0:
        s = x[1]
    for i in range(40):
        s = s + x[i % 2]
    r = 0.0 if x[0] > 0 else x.sum()
    return s.item(), (r * x[1]).item(), np.float64(r).item()


@pytest.mark.parametrize("f", [summed, of_a_sum_of_both, an_item, of_certain_kind])
def test_attributes_of_what_may_be_a_python_number(f):
    compiled = fusec.jit(f)
    for x in (X, -X):
        try:
            expected = f(x)
        except (AttributeError, TypeError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                compiled(x)
        else:
            assert compiled(x) == expected


def after_a_loop(x):
    s = 0.0
    for i in range(40):
        if x[0] > i:
            s = x[1]
    return s.sum()


def asked_for(x):
    s = 0.0 if x[0] > 0 else x.sum()
    return 1.0 if hasattr(s, "sum") else 2.0


def asked_with_another(x):
    s = 0.0 if x[0] > 0 else x.sum()
    return getattr(s, "size", 2.0)


@pytest.mark.parametrize("f", [after_a_loop, asked_for, asked_with_another])
def test_attributes_that_several_things_decide(f):
    with pytest.raises(fusec.UnsupportedError, match="that data makes Python's or NumPy's"):
        fusec.jit(f)(X)


@pytest.mark.parametrize("use", [
    lambda n: n / [1.0, 2.0], lambda n: [1.0, 2.0] - n, lambda n: n % (2.0,)])
def test_a_list_beside_a_number(use):
    def of_two_kinds(x):
        n = 0.0
        if x[1] > 0:
            n = x[0]
        return use(n)

    def of_python(x):
        return use(float(x[0]))

    x = np.array([1.0, 2.0])
    with pytest.raises(fusec.UnsupportedError, match="beside a number that is Python's or NumPy's"):
        fusec.jit(of_two_kinds)(x)
    with pytest.raises(TypeError) as wanted:
        of_python(x)
    with pytest.raises(TypeError) as raised:
        fusec.jit(of_python)(x)
    assert str(wanted.value) in str(raised.value)
