"""Arguments that a loop exchanges with other names have NumPy's values after a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

COUNTS = (3, 4, 5, 3, 0, 1, 2, 6)


def with_a_local(a: Any, n: Any) -> Any:
    t = np.zeros_like(a)
    for _ in range(n):
        t[1:-1] = a[1:-1] * 2
        a, t = t, a
    return (a**2).sum()


def two(a: Any, b: Any, n: Any) -> Any:
    for _ in range(n):
        b[1:-1] = a[1:-1] * 2
        a, b = b, a
    return (a**2).sum()


def three(a: Any, b: Any, c: Any, n: Any) -> Any:
    for _ in range(n):
        c[1:-1] = a[1:-1] * 2 + b[1:-1]
        a, b, c = b, c, a
    return (a**2).sum()


def with_two_locals(a: Any, n: Any) -> Any:
    b, c = a * 2, np.zeros_like(a)
    for _ in range(n):  # writes to the argument from the third name on, two iterations later
        c[1:-1] = a[1:-1] * 0.5 + b[1:-1]
        a, b, c = b, c, a
    return (a**2).sum()


def nested(a: Any, n: Any) -> Any:
    t = np.zeros_like(a)
    for _ in range(n):
        for _ in range(3):
            t[1:-1] = a[1:-1] * 0.5
            a, t = t, a
    return (a**2).sum()


def swapped_by_data(a: Any, b: Any, n: Any) -> Any:
    for _ in range(n[0]):
        a, b = b, a
    a *= 2
    return (a**2).sum()


def as_long_as_data_say(a: Any, n: Any) -> Any:
    t, k = np.zeros_like(a), 0
    while k < n[0]:
        t[1:-1] = a[1:-1] * 2
        a, t, k = t, a, k + 1
    return (a**2).sum()


def copied(a: Any, n: Any) -> Any:
    a = a.copy()
    t = np.zeros_like(a)
    for _ in range(n[0]):
        t[1:-1] = a[1:-1] * 2
        a, t = t, a
    return (a**2).sum()


def only_read(a: Any, n: Any) -> Any:
    new = np.zeros_like(a)
    for _ in range(n[0]):
        new = a * 2 + 1
        a, new = new, a
    return (a**2).sum()


def arrays(f: Callable[..., Any]) -> list[Any]:
    count = f.__code__.co_argcount - 1
    return [np.array([1.0, 5, 2, 7]) + k for k in range(count)]


def inside(f: Callable[..., Any]) -> Any:
    """The arguments' values within a compiled function, after a gradient there."""

    def program(*args: Any) -> Any:
        result = fusec.value_and_grad(f)(*args)
        return result, [x * 1 for x in args[:-1]]

    return fusec.jit(program)


def of_a_local(f: Callable[..., Any]) -> Any:
    """The same of arrays of the compiled function, which it copies back."""

    def program(*args: Any) -> Any:
        own = [x * 1 for x in args[:-1]]
        result = fusec.value_and_grad(f)(*own, args[-1])
        for x, y in zip(args[:-1], own, strict=True):
            x[...] = y
        return result

    return fusec.jit(program)


WAYS: list[Callable[..., Any]] = [
    fusec.grad, fusec.value_and_grad, fusec.jacobian, fusec.hessian, inside, of_a_local]


def of_all(f: Callable[..., Any]) -> Any:
    """The gradient by all arrays."""
    return fusec.grad(f, tuple(range(f.__code__.co_argcount - 1)))


@pytest.mark.parametrize("way", [*WAYS, of_all, fusec.jit])
@pytest.mark.parametrize("f", [with_a_local, with_two_locals, two, three, nested])
def test_arguments_hold_what_numpy_leaves(f: Callable[..., Any], way: Callable[..., Any]) -> None:
    compiled = way(f)
    for n in COUNTS:
        given, expected = arrays(f), arrays(f)
        f(*expected, n)
        compiled(*given, n)
        np.testing.assert_allclose(given, expected)


def test_what_is_read_later_in_a_compiled_function() -> None:
    compiled = inside(with_a_local)
    for n in COUNTS:
        expected, (x,) = arrays(with_a_local), arrays(with_a_local)
        value = with_a_local(*expected, n)
        (got, _), held = compiled(x, n)
        np.testing.assert_allclose(got, value)
        np.testing.assert_allclose(held, expected)


def test_memory_that_a_writing_name_gets_iterations_later() -> None:
    def by_data(a: Any, n: Any) -> Any:
        b, c, k = a * 2, np.zeros_like(a), 0
        while k < n[0]:
            c[1:-1] = a[1:-1] * 0.5 + b[1:-1]
            a, b, c, k = b, c, a, k + 1
        return (a**2).sum()

    for way in (fusec.jit, fusec.grad):
        with pytest.raises(fusec.UnsupportedError, match="copy the array before the loop"):
            way(by_data)(np.array([1.0, 5, 2, 7]), np.array([3]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [swapped_by_data, as_long_as_data_say])
def test_what_only_data_know_is_refused(f: Callable[..., Any], way: Callable[..., Any]) -> None:
    given = arrays(f)
    with pytest.raises(fusec.UnsupportedError, match="copy the ar") as plain:
        fusec.jit(f)(*given, np.array([1]))
    with pytest.raises(fusec.UnsupportedError, match="copy the ar") as differentiated:
        way(f)(*given, np.array([1]))
    assert str(plain.value).splitlines()[0] == str(differentiated.value).splitlines()[0]
    np.testing.assert_array_equal(given, arrays(f))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [copied, only_read])
def test_loops_that_leave_arguments_alone(f: Callable[..., Any], way: Callable[..., Any]) -> None:
    compiled = way(f)
    for n in COUNTS:
        given = arrays(f)
        compiled(*given, np.array([n]))
        np.testing.assert_array_equal(given, arrays(f))


def test_what_nobody_else_sees_may_be_exchanged() -> None:
    @fusec.jit
    def program(x: Any, n: Any) -> Any:
        return fusec.value_and_grad(as_long_as_data_say)(x * 1, n)

    for n in COUNTS:
        x = np.array([1.0, 5, 2, 7])
        expected = as_long_as_data_say(x.copy(), [n])
        np.testing.assert_allclose(program(x, np.array([n]))[0], expected)
