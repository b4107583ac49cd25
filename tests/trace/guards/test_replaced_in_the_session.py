"""Changes of a session between calls: code of functions, names of libraries, process state."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import fusec

X = np.array([1.0, 2.0, 3.0])
CONTEXT: ContextVar[float] = ContextVar("CONTEXT", default=1.0)
UNSET: ContextVar[float] = ContextVar("UNSET")
Case = tuple[Callable[[Any], Any], Callable[[Any], Any]]  # a program, and a change by monkeypatch


def other(a: Any) -> Any:
    return a * 100


def helper(a: Any) -> Any:
    return a + 1


def with_default(a: Any, k: float = 1.0) -> Any:
    return a + k


def with_keyword(a: Any, *, k: float = 1.0) -> Any:
    return a + k


class Model:
    def method(self, x: Any) -> Any:
        return x + 1

    @staticmethod
    def static(x: Any) -> Any:
        return x + 1

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x + 1

    @property
    def factor(self) -> float:
        return 2.0


MODEL = Model()
LIST = [lambda v: v + 1]
JITTED = fusec.jit(helper)


def decorated(f: Any) -> Any:
    @functools.wraps(f)
    def wrapper(x: Any) -> Any:
        return f(x) * 2

    return wrapper


WRAPPED = decorated(helper)


def code(fn: Any, new: Any = other) -> Callable[[Any], Any]:
    return lambda patch: patch.setattr(fn, "__code__", new.__code__)


def asks_unset(x: Any) -> Any:
    try:
        return x * UNSET.get()
    except LookupError:
        return -x


def asks_the_environment(x: Any) -> Any:
    return x * float(os.environ["FUSEC_TEST_X"]) if "FUSEC_TEST_X" in os.environ else -x


CASES: dict[str, Case] = {
    "helper": (lambda x: helper(x), code(helper)),
    "helper of a helper": (lambda x: WRAPPED(x), code(helper)),
    "in a list": (lambda x: LIST[0](x), code(LIST[0])),
    "jitted": (lambda x: JITTED(x), code(helper)),
    "method": (lambda x: MODEL.method(x), code(Model.method, lambda self, x: x * 9)),
    "static method": (lambda x: Model.static(x), code(Model.static)),
    "class method": (lambda x: Model.of_class(x), code(Model.of_class.__func__,  # type: ignore
                                                        lambda cls, x: x * 9)),
    "property": (lambda x: x * MODEL.factor, code(Model.factor.fget,  # type: ignore[attr-defined]
                                                  lambda self: 9.0)),
    "defaults": (lambda x: with_default(x),
                 lambda patch: patch.setattr(with_default, "__defaults__", (5.0,))),
    "keyword defaults": (lambda x: with_keyword(x),
                         lambda patch: patch.setattr(with_keyword, "__kwdefaults__", {"k": 5.0})),
    "one keyword default": (lambda x: with_keyword(x), lambda patch: patch.setitem(
        with_keyword.__kwdefaults__, "k", 5.0)),
    "shadowed builtin": (lambda x: x * abs(-2.0), lambda patch: patch.setitem(
        globals(), "abs", lambda v: 50.0)),
    "np.sin": (lambda x: np.sin(x), lambda patch: patch.setattr(np, "sin", np.cos)),
    "np.sum": (lambda x: x * np.sum(x), lambda patch: patch.setattr(np, "sum", lambda a: 7.0)),
    "np.linalg.norm": (lambda x: x * np.linalg.norm(x),
                       lambda patch: patch.setattr(np.linalg, "norm", lambda a: 7.0)),
    "np.pi": (lambda x: x * np.pi, lambda patch: patch.setattr(np, "pi", 3.0)),
    "math.sqrt": (lambda x: x * math.sqrt(4.0),
                  lambda patch: patch.setattr(math, "sqrt", lambda a: 7.0)),
    "context variable": (lambda x: x * CONTEXT.get(), lambda patch: CONTEXT.set(4.0)),
    "context variable without a value": (asks_unset, lambda patch: UNSET.set(4.0)),
    "error state": (lambda x: x if np.geterr()["divide"] == "warn" else -x,
                    lambda patch: np.seterr(divide="ignore")),
    "print options": (lambda x: x * np.get_printoptions()["precision"],
                      lambda patch: np.set_printoptions(precision=3)),
    "environment": (asks_the_environment, lambda patch: patch.setenv("FUSEC_TEST_X", "4")),
    "os.getenv": (lambda x: x * float(os.getenv("FUSEC_TEST_X", "2")),
                  lambda patch: patch.setenv("FUSEC_TEST_X", "4")),
    "environment with a default": (lambda x: x * float(os.environ.get("FUSEC_TEST_X", "2")),
                                   lambda patch: patch.setenv("FUSEC_TEST_X", "4")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_call_sees_the_change(case: str, monkeypatch: Any) -> None:
    program, change = CASES[case]
    jitted = fusec.jit(program)
    with np.errstate(), np.printoptions():
        for _ in range(3):
            np.testing.assert_array_equal(jitted(X), program(X))
        assert jitted.trace_count == 1
        change(monkeypatch)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(X), program(X))
        assert jitted.trace_count == 2


def test_the_function_s_own_code() -> None:
    """Which the launcher compares."""
    def program(x: Any) -> Any:
        return x + 1

    def later(x: Any) -> Any:
        return x * 7

    jitted = fusec.jit(program)
    np.testing.assert_array_equal(jitted(X), X + 1)
    program.__code__ = later.__code__
    np.testing.assert_array_equal(jitted(X), X * 7)


def test_reports_tell_nothing_of_what_hardly_changes() -> None:
    text = str(fusec.explain(lambda x: np.sin(x) * abs(-2.0) + helper(x), X))
    assert "np.sin" not in text and "builtin" not in text and "code of" not in text
