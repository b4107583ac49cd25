"""Errors that say the truth: Python's and NumPy's own texts, and the exact cause of a refusal."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

G = np.array(1)
ITEMS = [3.0, 1.0, 2.0]


class Counter:
    n = 0


class Index:
    def __init__(self):
        self.n = 0

    def __index__(self):
        self.n += 1
        return 1


def unbound_outside(x):
    def inner():
        return x + late

    if x.shape[0] > 5:
        late = 1
    result = inner()
    late = 2
    return result * late


def unbound_inside(x):
    if x.shape[0] > 5:
        late = 1
    return x + late


@pytest.mark.parametrize("program", [unbound_outside, unbound_inside])
def test_variables_without_a_value(program):
    with pytest.raises(NameError) as wanted:
        program(np.ones(2))
    with pytest.raises(NameError) as got:
        fusec.jit(program)(np.ones(2))
    assert type(got.value) is type(wanted.value)
    assert str(got.value).splitlines()[0] == str(wanted.value)


@pytest.mark.parametrize("program", [
    lambda x: x * "a", lambda x: "a" * x, lambda x: x + "a", lambda x: x - b"a",
    lambda x: x[0] * "a", lambda x: "a" + x,
])
def test_arrays_and_texts(program):
    with pytest.raises(TypeError) as wanted:
        program(np.ones(2))
    with pytest.raises(TypeError) as got:
        fusec.jit(program)(np.ones(2))
    assert str(got.value).splitlines()[0] == str(wanted.value)
    assert "test_true_texts.py" in str(got.value)


def counted(x):
    Counter.n += 1
    return x * Counter.n


def test_a_class_is_named():
    with pytest.raises(fusec.UnsupportedError, match=(
            r"assigning to the attribute 'n' of the class Counter(.|\n)*keep it in an object")):
        fusec.jit(counted)(np.ones(2))
    f = fusec.jit(counted, fallback="eager")
    Counter.n = 0
    with pytest.warns(fusec.FallbackWarning):
        assert [f(np.ones(1)).item() for _ in range(3)] == [1, 2, 3]


def stored(x, i):
    x[i] = 5.0
    x[i:] += 1
    return x


INDICES = {
    "an item": lambda x, i: x[i],
    "with others": lambda x, i: x[i, ...] + x[..., i],
    "a slice": lambda x, i: x[i:],
    "stored": stored,
    "of a list": lambda x, i: x * [1.0, 2.0, 3.0][i],
    "of a tuple": lambda x, i: x * (1.0, 2.0, 3.0)[:i][0],
    "a range": lambda x, i: x + sum(range(i, 4)),
    "a shape": lambda x, i: x + np.zeros(i) + np.ones((2, i))[0],
}


@pytest.mark.parametrize("name", INDICES)
def test_objects_that_are_indices(name):
    i, j = Index(), Index()
    f = fusec.jit(lambda x: INDICES[name](x, i))
    for _ in range(3):
        assert f(np.arange(3.0)).tolist() == INDICES[name](np.arange(3.0), j).tolist()
        assert i.n == j.n


def sort_outside(x):
    ITEMS.sort()
    return x * ITEMS[0]


def sort_made(x):
    items = [x[1], x[0], x[2]]
    items.sort(reverse=True)
    return items[0] - items[1]


@pytest.mark.parametrize("program", [sort_outside, sort_made])
def test_lists_are_sorted_in_place(program):
    f = fusec.jit(program)
    for first in (3.0, 0.5):
        ITEMS[:] = first, 1.0, 2.0
        wanted = program(np.arange(3.0))
        held = list(ITEMS)
        ITEMS[:] = first, 1.0, 2.0
        assert np.array_equal(f(np.arange(3.0)), wanted)
        assert held == ITEMS


@pytest.mark.parametrize("program", [
    lambda x: x.std(ddof=G), lambda x: np.var(x, ddof=G), lambda x: x.std(ddof=int(G)),
    lambda x: np.stack([x, x], axis=G), lambda x: np.expand_dims(x, G),
    lambda x: np.moveaxis(np.outer(x, x + 1), G, 0),
])
def test_numbers_in_arrays_from_outside(program):
    G[...] = 1
    f = fusec.jit(program)
    for value in (1, 0):
        G[...] = value
        assert np.allclose(f(np.arange(3.0)), program(np.arange(3.0)))


def test_the_number_ddof_is_asked_for():
    with pytest.raises(fusec.ConcreteValueError, match="the number ddof is needed"):
        fusec.jit(lambda x, n: x.std(ddof=n))(np.ones(3), 0.5)
