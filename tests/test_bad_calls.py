"""Calls with wrong arguments, things that cannot be decorated, and options that there are not."""

from __future__ import annotations

import functools
import re
import traceback
from typing import Any

import numpy as np
import pytest
from test_bad_input import X, failure

import fusec
from fusec import UnsupportedError


@pytest.mark.parametrize(("args", "kwargs"), [
    ((), {}), ((1, 2, 3), {}), ((1,), {"z": 3}), ((1,), {"a": 1}),
])
def test_wrong_arguments_are_pythons_own_error(args: tuple, kwargs: dict[str, Any]) -> None:
    ran = []

    def f(a, b=2):
        ran.append(1)
        return a

    with pytest.raises(TypeError) as plain:
        f(*args, **kwargs)
    with pytest.raises(TypeError) as caught:
        fusec.jit(f)(*args, **kwargs)
    assert str(caught.value) == str(plain.value) and type(caught.value) is TypeError
    assert not ran


def generator(x):
    y = x
    yield y


async def coroutine(x):
    return x


@pytest.mark.parametrize(("fn", "construct", "line"), [
    (generator, "'yield'", "    yield y\n    ^^^^^^^"),
    (coroutine, "'async def'", "async def coroutine(x):"),
])
def test_generators_and_coroutines_are_refused_at_once(fn: Any, construct: str, line: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        fusec.jit(fn)
    assert str(caught.value).startswith(f"{construct} cannot be traced")
    assert str(caught.value).endswith(line)
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 1


@pytest.mark.parametrize(("thing", "words"), [
    (3, "needs a function, got int"), (np.sin, "the ufunc 'sin'"), (sum, "'sum'"),
    (dict, "the class dict"), (functools.partial(np.add, 1), "the ufunc 'add'"),
    (staticmethod(len), "put @staticmethod above @fusec.jit"),
])
def test_things_that_cannot_be_compiled(thing: Any, words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        fusec.jit(thing)


def test_callables_without_a_name() -> None:
    class Adder:
        def __call__(self, x):
            return x + 1

    for fn in (functools.partial(lambda a, b: a + b, 1), Adder()):
        assert fusec.jit(fn)(X)[0, 0] == 2.0


@pytest.mark.parametrize(("options", "words"), [
    ({"fp": "wild"}, "'contract', 'strict', 'fast'"), ({"device": "a b"}, "is no name of a device"),
    ({"compile": "later"}, "compile='later'"),
    ({"autograph": False}, "autograph=False"),
    ({"check_indices": 0}, "expected True or False"), ({"static": "alhpa"}, "did you mean alpha?"),
    ({"static": 5}, "it has x, alpha"), ({"nonsense": 1}, "nonsense"),
])
def test_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=re.escape(words)):
        fusec.jit(lambda x, alpha: x, **options)


def test_input_signatures() -> None:
    spec = fusec.TensorSpec([None])
    shown = str(failure(lambda a: a, X, input_signature=[spec]))
    assert "expected: TensorSpec([?], float64)\n  given:    f64[3,4]" in shown
    assert "has 1 entry, the call has 2 arguments" in str(
        failure(lambda a, b: a, X, X, input_signature=[spec]))


@pytest.mark.parametrize(("function", "cure"), [
    (np.sort, "lambda x: np.sort(x)"), (np.linalg.inv, "lambda x: np.linalg.inv(x)"),
    (np.sin, "lambda x: np.sin(x)"), (functools.cache(generator), "generator.__wrapped__")])
def test_functions_without_python_code(function: Any, cure: str) -> None:
    with pytest.raises(TypeError) as caught:
        fusec.benchmark(function, X)
    assert cure in str(caught.value)
