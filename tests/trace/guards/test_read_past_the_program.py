"""Values that Python, or a method in C, reads for a program: they stay true to those of now."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import fusec

X = np.arange(3.0)


class Hinted:
    count = 2

    def __length_hint__(self):
        return self.count


class Reversible:
    first = 2

    def __reversed__(self):
        return iter([Reversible.first])


def hinted(x, thing):
    return x * operator.length_hint(thing)


def turned(x, thing):
    return x * next(iter(list(reversed(thing))))


@pytest.mark.parametrize(("f", "kind", "name"), [
    (hinted, Hinted, "count"), (turned, Reversible, "first")])
def test_attributes_of_classes_that_special_methods_read(f, kind, name, monkeypatch):
    thing = kind()
    fast = fusec.jit(lambda x: f(x, thing))
    np.testing.assert_array_equal(fast(X), f(X, thing))
    monkeypatch.setattr(kind, name, 9)
    np.testing.assert_array_equal(fast(X), X * 9)


class Settings:
    k = 2.0


class Computed:
    def __init__(self):
        self.k = 2.0

    def __getattribute__(self, name):
        return 5.0 if name == "five" else object.__getattribute__(self, name)


def test_getattribute_as_an_argument():
    settings = Settings()
    fast = fusec.jit(lambda x, get: x * get("k"))
    np.testing.assert_array_equal(fast(X, settings.__getattribute__), X * 2)
    settings.k = 9.0
    np.testing.assert_array_equal(fast(X, settings.__getattribute__), X * 9)


def test_a_getattribute_of_its_own():
    thing = Computed()
    fast = fusec.jit(lambda x: x * thing.k * thing.five)
    np.testing.assert_array_equal(fast(X), X * 10)
    thing.k = 3.0
    np.testing.assert_array_equal(fast(X), X * 15)


@pytest.mark.parametrize("change", [
    lambda given: given.update(k=5.0), lambda given: given.update(j=5.0), dict.clear])
def test_keywords_of_a_partial_that_change_are_refused(change):
    def scaled(x, k=1.0, j=1.0):
        return x * k * j

    given = functools.partial(scaled, k=2.0)
    fast = fusec.jit(functools.partial(given))
    np.testing.assert_array_equal(fast(X), X * 2)
    change(fast.python_function.keywords)
    with pytest.raises(ValueError, match="of a partial has changed since"):
        fast(X)
