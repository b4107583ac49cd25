"""fusec.print, fusec.check_numerics, and the warnings of effects that happen while tracing only."""

from __future__ import annotations

import datetime
import io
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(6.0).reshape(2, 3)


def written(f: Callable[..., Any], *args: Any) -> str:
    """The output of a call."""
    standard, sys.stdout = sys.stdout, io.StringIO()
    try:
        f(*args)
        return sys.stdout.getvalue()
    finally:
        sys.stdout = standard


def values(x: Any, n: int) -> Any:
    y = x * 2 + n
    fusec.print("y =", y, y.sum(), x.shape, n, sep=" | ", end=";\n")
    fusec.print([y[0], (n, 1.5)], None, True, np.float32(0.5), x.dtype, y.max() > 3)
    fusec.print()
    return y


def loop(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total = total + x[0, 1] * i
        if total > 20:
            fusec.print("large at", i, total)
        else:
            fusec.print(i, flush=True)
    fusec.print("done", total)
    return total


def views(x: Any, n: int) -> Any:
    y = x.copy()
    for i in range(n):
        y[0, 1] = i
        fusec.print(y[:, ::-1], y.T[1], i, y[0], x[0, 0] > 1, sep="/")
    return y


def drawn(x: Any, n: int) -> Any:
    rng = np.random.default_rng(n)
    fusec.print(rng.random(2))
    fusec.print(x + rng.random(3))
    return x


@pytest.mark.parametrize("f", [values, loop, views, drawn])
def test_it_prints_what_the_eager_run_prints(f: Callable[..., Any]) -> None:
    compiled = fusec.jit(f)
    for x, n in ((X, 3), (X, 40), (X + 1, 40)):
        assert written(compiled, x, n) == written(f, x, n) != ""


def test_a_file_and_an_object_that_changes() -> None:
    class Counter:
        count = 0

        def __str__(self) -> str:
            return f"<{self.count}>"

    target, counter = io.StringIO(), Counter()

    @fusec.jit
    def f(x: Any) -> Any:
        fusec.print(counter, x[0], file=target)
        return x

    f(X)
    counter.count = 7
    f(X + 1)
    assert target.getvalue() == "<0> [0. 1. 2.]\n<7> [1. 2. 3.]\n"


def test_what_was_printed_before_an_error_is_not_printed_again() -> None:
    def f(x: Any, i: Any) -> Any:
        fusec.print("before", x[0, 0])
        y = x[i] + 1
        fusec.print("after")
        return y

    compiled, output = fusec.jit(f), io.StringIO()

    def call() -> None:
        with pytest.raises(IndexError):
            compiled(X, np.array([5]))

    text = written(call)
    assert text.count("before") == 1
    assert not output.getvalue()


def test_check_numerics() -> None:
    def f(x: Any) -> Any:
        return fusec.check_numerics(np.log(x), "log of x") + 1

    compiled = fusec.jit(f)
    np.testing.assert_allclose(compiled(X + 1), f(X + 1))
    for call in (f, compiled):
        with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="log of x: inf"):
            call(X)
    assert fusec.check_numerics(1.5) == 1.5


def test_a_dict_of_traced_values_is_refused() -> None:
    with pytest.raises(fusec.UnsupportedError, match="print its items"):
        fusec.jit(lambda x: fusec.print({"x": x}))(X)


# --- effects that are not recorded --------------------------------------------------------------

EFFECTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "print": (lambda x: print(x), "print happens .* fusec.print prints the values of every call"),
    "print of text": (lambda x: print("text"), "fusec.print"),
    "time": (lambda x: x + time.time(), "time.time happens .* measure around the call"),
    "a file": (lambda x: sys.stderr.write("x"), "write happens .* to a file too"),
    "logging": (lambda x: logging.getLogger("a").info("x"), "logging .* log the results after"),
    "a date": (lambda x: datetime.datetime.now(), "pass the time as an argument"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_other_effects_warn_once_with_their_line(name: str) -> None:
    f, words = EFFECTS[name]
    compiled = fusec.jit(f)
    with pytest.warns(fusec.SideEffectWarning, match=words) as found:
        compiled(X)
        compiled(X[0])
    warning, = found
    assert warning.filename == __file__
    assert warning.lineno == f.__code__.co_firstlineno


def test_lists_of_the_function_itself_are_no_effect(recwarn: Any) -> None:
    def f(x: Any) -> Any:
        rows = []
        for row in x:
            rows.append(row * 2)
        return np.stack(rows)

    np.testing.assert_array_equal(fusec.jit(f)(X), X * 2)
    assert not recwarn


def logged(x: Any) -> Any:
    log = logging.getLogger("fusec.test.logged")
    log.warning("sum %s of %5.2f and 100%%", x.sum(), x[0, 0])
    log.log(logging.ERROR, "%(first)s of %(size)d", {"first": x[0, 0], "size": x.size})
    log.error(x.max())
    log.error("plain %s", 3)
    if x.sum() > 0:
        log.error("in a branch: %d", x.sum())
    return x * 2


@pytest.mark.filterwarnings("ignore::fusec.SideEffectWarning")
def test_logged_values_of_the_run_are_named(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    fusec.jit(logged)(X)
    assert [r.getMessage() for r in caplog.records][:5] == [
        "sum {x.sum()} of {x[0, 0]} and 100%", "{x[0, 0]} of 6", "{x.max()}", "plain 3",
        "in a branch: {x.sum()}"]
    assert "Logging error" not in capfd.readouterr().err
