"""Functions that were called before, and so have plans that run at once, called by one that is
traced: they are traced with it, also where none of their arguments is a value of the trace."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from variables.nested_calls import difference

import fusec

X = np.zeros(3)
ONES = np.ones(3)


class Model:
    def __init__(self) -> None:
        self.weights = fusec.Variable(ONES)

    @fusec.jit
    def doubled(self) -> Any:
        return self.weights * 2


def functions_of(w: fusec.Variable) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Jitted functions that give twice the Variable's value, and their arguments."""
    model = Model()
    model.weights = w
    return {
        "none": (fusec.jit(lambda: w * 2), ()),
        "a number": (fusec.jit(lambda k: w * k), (2.0,)),
        "an array": (fusec.jit(lambda a: w * a), (2 * ONES,)),
        "the Variable": (fusec.jit(lambda a: a * 2), (w,)),
        "a dict": (fusec.jit(lambda tree: tree["a"] * tree["k"]), ({"a": w, "k": 2.0},)),
        "an instance": (model.doubled, ()),
    }


@pytest.mark.parametrize("name", functions_of(fusec.Variable(ONES)))
def test_what_a_cached_function_reads_is_read_at_each_call(name: str) -> None:
    w = fusec.Variable(ONES)
    function, args = functions_of(w)[name]
    for _ in range(4):
        function(*args)

    @fusec.jit
    def f(x: Any) -> Any:
        return x + function(*args)

    @fusec.jit
    def through_python(x: Any) -> Any:
        return functools.reduce(lambda a, _: a + function(*args), range(1), x)

    for value in (1.0, 7.0):
        w.assign(np.full(3, value))
        np.testing.assert_array_equal(f(X), np.full(3, 2 * value))
        np.testing.assert_array_equal(through_python(X), np.full(3, 2 * value))


def test_what_a_cached_function_assigns_is_assigned_at_each_call() -> None:
    w = fusec.Variable(ONES)

    @fusec.jit
    def step() -> Any:
        w.assign_add(ONES)
        return w.sum()

    for _ in range(4):
        step()
    f = fusec.jit(lambda x: x + step())
    assert [f(0.0) for _ in range(3)] == [18.0, 21.0, 24.0]
    assert w.numpy().tolist() == [8.0] * 3


def test_second_derivatives_of_a_gradient_that_was_called_before() -> None:
    w = fusec.Variable(np.arange(1.0, 4.0))

    def f(a: Any) -> Any:
        return (a**3).sum()

    for _ in range(3):
        fusec.grad(f)(w)
    np.testing.assert_allclose(fusec.hessian(f)(w), np.diag(6 * w.numpy()))
    np.testing.assert_allclose(fusec.hvp(f, (w,), (ONES,))[0], 6 * w.numpy())


def test_calls_of_other_threads_take_their_plans_meanwhile() -> None:
    w = fusec.Variable(ONES)
    double, ends, answers = fusec.jit(lambda: w * 2), threading.Event(), list[bool]()
    double(), double()

    def call() -> None:
        while not ends.is_set():
            answers.append(double().tolist() == [2.0] * 3)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        for k in range(4):
            f = fusec.jit(lambda x, k=k: x + k * double())
            np.testing.assert_array_equal(f(X), k * 2 * ONES)
    finally:
        ends.set()
        thread.join()
    assert answers and all(answers) and double.trace_count == 1


@pytest.mark.parametrize("name", [*functions_of(fusec.Variable(ONES))][:5])
def test_a_call_for_one_signature_would_be_a_constant(name: str) -> None:
    function, args = functions_of(fusec.Variable(ONES))[name]
    concrete = function.concrete(*args)  # type: ignore[attr-defined]
    with pytest.raises(fusec.UnsupportedError, match="for one signature in a function"):
        fusec.jit(lambda x: x + concrete(*args))(X)


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_of_functions_that_call_each_other(seed: int) -> None:
    assert not difference(seed)
