"""Exceptions that the program catches: those of the trace, of compiled code, and fusec's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.array([0.0, 1.0, 2.0])


class Limit(Exception):
    pass


ERRORS = (KeyError, (ValueError, ZeroDivisionError))


def raised(x, k):
    try:
        if x[0] > k:
            raise Limit("above")
        s = 1.0
    except Limit:
        s = 2.0
    return s


def raised_in_a_helper(x, k):
    def checked(c):
        if c > k:
            raise Limit(3)
        return c

    try:
        return checked(x[0])
    except (KeyError, Limit):
        return 7.0


def raised_in_a_loop(x, k):
    s = 0.0
    try:
        for i in range(30):
            if x[i % 3] > k + 2:
                raise Limit
            s += 1
    except Limit:
        pass
    return s


def suppressed(x, k):
    with contextlib.suppress(Limit, KeyError):
        if x[0] > k:
            raise Limit("above")
        return 1.0
    return 2.0


def divided(x, k):
    try:
        return 1 / (float(x[0]) - k - 1)
    except ERRORS:
        return 5.0


def out_of_range(x, k):
    try:
        return x[np.int64(k + 4)] if x[0] > k else x[1]
    except IndexError:
        return 7.0


def anything(x, k):
    try:
        if x[0] > k:
            raise Limit
        return x[1]
    except:  # noqa: E722
        return 9.0


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return kind is Limit


def kept_by_a_manager(x, k):
    with Quiet():
        if x[0] > k:
            raise Limit
        return x[1]
    return x[2]


@pytest.mark.parametrize("f", [
    raised, raised_in_a_helper, raised_in_a_loop, suppressed, divided, out_of_range, anything,
    kept_by_a_manager], ids=lambda f: f.__name__)
def test_what_compiled_code_raises_says_that_it_would_be_caught(f: Callable[..., Any]) -> None:
    """The program goes on as long as nothing is raised; no handler is passed over in silence."""
    jitted = fusec.jit(f)
    assert jitted(X, 1.0) == f(X, 1.0)
    with pytest.raises(UnsupportedError, match=r"catching .*, which compiled code raises") as found:
        jitted(X, -1.0)
    assert found.value.loc is not None
    assert "caught by" in str(found.value)
    assert jitted(X, 1.0) == f(X, 1.0)


def singular(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return a


def test_library_calls() -> None:
    jitted = fusec.jit(singular)
    np.testing.assert_array_equal(jitted(2 * np.eye(2)), np.eye(2) / 2)
    with pytest.raises(UnsupportedError, match="catching LinAlgError"):
        jitted(np.ones((2, 2)))


def test_other_exceptions_are_the_programs() -> None:
    def f(x, k):
        try:
            if x[0] > k:
                raise Limit("above")
            return x[0]
        except KeyError:
            return 7.0

    jitted = fusec.jit(f)
    with pytest.raises(Limit, match="above"):
        jitted(X, -1.0)

    def after(x, k):
        try:
            y = x[0]
        except IndexError:
            y = x[1]
        return y + x[k]

    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
        fusec.jit(after)(X, np.int64(9))


def refused(x):
    try:
        return np.trim_zeros(x)
    except Exception:
        return x


def refused_in_with(x):
    with contextlib.suppress(Exception):
        return np.trim_zeros(x)
    return x


def refused_by_any(x):
    try:
        return np.trim_zeros(x)
    except:  # noqa: E722
        return x


def refused_by_a_manager(x):
    class Any_:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return True

    with Any_():
        return np.trim_zeros(x)
    return x


@pytest.mark.parametrize("f", [refused, refused_in_with, refused_by_any, refused_by_a_manager],
                         ids=lambda f: f.__name__)
def test_refusals_are_not_the_programs_to_catch(f: Callable[..., Any]) -> None:
    """They were, and the handler's result came out for every argument."""
    with pytest.raises(UnsupportedError, match="trim_zeros"):
        fusec.jit(f)(X)


def missing(x):
    try:
        return x.nothing
    except AttributeError:
        return x + 1


def misshapen(x):
    try:
        return x.reshape(2, 2)
    except ValueError as error:
        return x + isinstance(error, Exception)


def named_before(x):
    errors = (KeyError, IndexError)
    try:
        return {}["a"]
    except errors:
        return x + 2


def raised_again(x):
    try:
        try:
            raise Limit("one")
        except Limit as error:
            raise ValueError("two") from error
    except ValueError as error:
        return x + len(error.args[0])


@pytest.mark.parametrize("f", [missing, misshapen, named_before, raised_again],
                         ids=lambda f: f.__name__)
def test_what_is_raised_while_tracing_is_caught(f: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(fusec.jit(f)(X), f(X))


LEDGER = [[0.0]]


def counted(x, y):
    LEDGER[0][0] += 2.0
    x[0] += y[1]


def test_changes_of_containers_stand_when_another_trace_takes_over() -> None:
    """Arguments that overlap are traced anew: items of earlier calls in the list are kept."""
    LEDGER[0][0] = 0.0
    jitted, z = fusec.jit(counted), np.arange(4.0)
    jitted(np.ones(3), np.ones(3))
    assert LEDGER == [[2.0]]
    jitted(z[1:], z[:-1])
    assert LEDGER == [[4.0]]
    jitted.concrete(np.ones(3), np.ones(3))
    before = LEDGER[0][0]
    jitted(z[1:], z[:-1])
    assert LEDGER[0][0] == before + 2.0


def reshaped(x, n):
    try:
        return np.arange(max(n, 0)).reshape(2, 1)
    except ValueError:
        return x


def read(x, n):
    try:
        return x[n] + x[n - 1]
    except IndexError:
        return x[0]


def counted_in_rows(x, n):
    try:
        return np.bincount(np.arange(len(x)), minlength=3).reshape(2, len(x))
    except ValueError:
        return x


@pytest.mark.parametrize("f", [reshaped, read, counted_in_rows], ids=lambda f: f.__name__)
def test_what_ints_and_sizes_decide_is_caught(f: Callable[..., Any]) -> None:
    """They are known while tracing where a handler needs it."""
    jitted = fusec.jit(f)
    for n in (1, 2, 9, 3, 4):
        x = np.arange(float(n % 5 + 1))
        np.testing.assert_array_equal(jitted(x, n), f(x, n))


@pytest.mark.parametrize(("arguments", "what"), [
    ((b"x",), "of type bytes"), (("a", [1]), "of type list"),
    (("utf-8", b"x", 0, 1, "w"), "of type bytes")])
def test_arguments_of_exceptions_are_numbers_and_texts(arguments: Any, what: str) -> None:
    kind = UnicodeDecodeError if len(arguments) == 5 else ValueError

    def f(x: Any) -> Any:
        if x.sum() > 2.0:
            raise kind(*arguments)
        return x

    with pytest.raises(fusec.UnsupportedError, match=f"{kind.__name__} with an argument {what}"):
        fusec.jit(f)(np.ones(2))
