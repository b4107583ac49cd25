"""``raise`` and ``assert`` that data decides: the program's own exceptions, at run time."""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def in_a_branch(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


def after_a_loop(x, tolerance):
    for i in range(50):
        x = x * 0.5
        if np.abs(x).max() < tolerance:
            return x, i
    raise RuntimeError("no convergence")


def in_nested_loops(a):
    a = a.copy()
    for k in range(a.shape[0]):
        if a[k, k] == 0:
            raise np.linalg.LinAlgError("zero pivot")
        for i in range(k + 1, a.shape[0]):
            a[i] -= a[i, k] / a[k, k] * a[k]
    return a


def assertions(x):
    assert x[0] > 0, "first"
    total = 0.0
    for v in x:
        assert v < 10
        total += v
    return total


def in_nested_branches(x):
    y = x[0]
    if x[0] > 0:
        if x[1] > 1:
            raise KeyError("k")
        if x[1] < -1:
            raise IndexError
        y = x[1]
    return y


def only_a_check(x):
    for i in range(len(x)):
        if x[i] > 100:
            raise OverflowError("large")
    return len(x)


class Stop(BaseException):
    pass


def ends_the_process(x):
    if x[0] > 5:
        sys.exit(3)
    for v in x:
        if v < 0:
            raise SystemExit("negative")
        if v == 4:
            raise KeyboardInterrupt
    while x[0] < 3:
        x = x + 1
        if x[1] > 7:
            raise Stop("one", 2)
    return x


def interrupted(x):
    if x[0] > 5:
        _thread.interrupt_main()
        for _ in range(1000):
            x = x + 1
    return x


X = np.arange(1.0, 20.0)
EYE = np.eye(20)
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (in_a_branch, (X,)), (in_a_branch, (-X,)), (after_a_loop, (X, 1e-3)),
    (after_a_loop, (X, 1e-30)), (in_nested_loops, (EYE + 1,)),
    (in_nested_loops, (EYE - EYE[3],)), (assertions, (X / 4,)), (assertions, (-X,)),
    (assertions, (X,)), (only_a_check, (X,)), (only_a_check, (X * 20,)),
    *[(in_nested_branches, (np.array(pair),)) for pair in (
        [1.0, 0.5], [1.0, 5.0], [-1.0, 5.0], [1.0, -5.0])],
    *[(ends_the_process, (np.array(pair),)) for pair in (
        [1.0, 0.5], [6.0, 0.0], [1.0, -1.0], [1.0, 4.0], [2.0, 7.0])],
]


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return fn(*args)
    except AssertionError as error:  # pytest's own asserts add to the text
        return AssertionError, str(error).partition("assert")[0].strip()
    except BaseException as error:
        return type(error), error.args


@pytest.mark.parametrize(("fn", "args"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_the_same_exception_or_result(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected, found = outcome(fn, args), outcome(fusec.jit(fn, fp="strict"), args)
    if isinstance(expected, tuple) and isinstance(expected[0], type):
        assert found == expected
    else:
        assert type(found) is type(expected)
        np.testing.assert_allclose(
            np.hstack(found if isinstance(found, tuple) else (found,)),
            np.hstack(expected if isinstance(expected, tuple) else (expected,)), rtol=1e-12)


def test_an_interrupt_while_tracing_is_none_of_the_programs() -> None:
    """Ctrl-C on a side of a branch ends the call that is traced, and is no part of its code."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background
    try:                                                                # ignores it
        with pytest.raises(KeyboardInterrupt):
            fusec.jit(interrupted)(X)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_the_users_line_is_a_note() -> None:
    with pytest.raises(ValueError, match="negative") as caught:
        fusec.jit(in_a_branch)(-X)
    assert "test_checks.py" in "".join(getattr(caught.value, "__notes__", []))


def test_texts_of_exceptions_name_the_values_that_only_the_run_knows() -> None:
    """``raise ValueError(f"negative: {x}")`` where data decides: the expression stands for it."""
    def negative(x: Any) -> Any:
        if x < 0:
            raise ValueError(f"negative: {x}, {type(x).__name__}")
        return x * 2

    def larger(a: Any, b: Any) -> Any:
        assert a.max() > b.max(), f"{a.max()} of {a.shape} and {b[0]:.3f}"
        return a - b

    def in_a_loop(x: Any, most: Any) -> Any:
        for i in range(len(x)):
            if x[i] > most:
                raise RuntimeError(f"{x[i]!r} at {i} of {len(x)}")
        return x

    compiled = fusec.jit(negative)
    assert compiled(2.0) == 4.0
    with pytest.raises(ValueError, match=r"^negative: \{x\}, float"):
        compiled(-2.0)
    one, two = np.ones(3), np.full(3, 2.0)
    assert fusec.jit(larger)(two, one).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(AssertionError, match=r"\{a.max\(\)\} of \(3,\) and \{b\[0\]\}"):
        fusec.jit(larger)(one, two)
    assert fusec.jit(in_a_loop)(np.arange(40.0), 50.0)[39] == 39.0
    with pytest.raises(RuntimeError, match=r"\{x\[i\]\} at \{i\} of 40"):
        fusec.jit(in_a_loop)(np.arange(40.0), 30.0)
    with pytest.raises(fusec.errors.FusecTypeError, match="return different things"):
        fusec.jit(lambda x: f"{x}" if x > 0 else "")(2.0)
