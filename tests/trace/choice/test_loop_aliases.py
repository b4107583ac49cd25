"""Arrays that a loop binds anew: aliases of their memory when one of them is written.

Every program gives NumPy's results, or says that it cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError


class Holder:
    """Keeps an array where no name shows it."""

    kept: Any


def written_after(c: Any, u: Any) -> Any:
    kept = c * 1
    x = kept
    i = 0
    while i < u[0]:
        x = x * 2
        i += 1
    x[0] = 7
    return kept, x


def other_written_after(c: Any, u: Any) -> Any:
    kept = c * 1
    x = kept
    for _i in range(u[0]):
        x = x * 2
    kept[0] = 9
    return kept, x


def view_written_after(c: Any, u: Any) -> Any:
    kept = c * 1
    x = kept[1:]
    i = 0
    while i < u[0]:
        x = x * 2
        i += 1
    x[0] = 7
    return kept, x


def attribute_holds_it(c: Any, u: Any) -> Any:
    holder = Holder()
    holder.kept = c * 1
    x = holder.kept
    i = 0
    while i < u[0]:
        x = x * 2
        i += 1
    x[0] = 7
    return holder.kept, x


def caller_holds_it(c: Any, u: Any) -> Any:
    x = c * 1
    return x, _doubled_and_marked(x, u)


def _doubled_and_marked(x: Any, u: Any) -> Any:
    i = 0
    while i < u[0]:
        x = x * 2
        i += 1
    x[0] = 7
    return x


def list_holds_it(c: Any, u: Any) -> Any:
    held = [c * 1]
    x = held[0]
    i = 0
    while i < u[0]:
        x = x * 2
        i += 1
    x[0] = 7
    return held[0], x


def argument(c: Any, u: Any) -> Any:
    i = 0
    while i < u[0]:
        c = c * 2
        i += 1
    c[0] = 7
    return c


def two_names_at_the_end(c: Any, u: Any) -> Any:
    x, y, i = c * 1, c * 3, 0
    while i < u[0]:
        x = x * 2
        y = x
        i += 1
    x[0] = 7
    return x, y


def two_names_in_the_loop(c: Any, u: Any) -> Any:
    x, y, i, s = c * 1, c * 3, 0, 0.0
    while i < u[0]:
        x[0] += 1
        s += y[0]
        x = x * 2
        y = x[:]
        i += 1
    return s


def exchanged_and_written(c: Any, u: Any) -> Any:
    p, q = c * 1, c * 2
    x, y, i = p, q, 0
    while i < u[0]:
        x, y = y, x
        i += 1
    x[0] = 7
    return p, q, x


def alone(c: Any, u: Any) -> Any:
    x, i = c * 1, 0
    while i < u[0]:
        x = x * 2
        i += 1
    x[0] = 7
    return x


def exit_after_exchanges(x: Any, u: Any) -> Any:
    y, i = x * 2, 5
    while i > 0:
        i -= 1
        if u[0] < 1:
            return x
        x, y = y, x
    x[2] += 1
    return x


def argument_in_nested_loops(x: Any, u: Any) -> Any:
    """Seed c703286: in a loop's body the inner loop's array stood for the argument."""
    for _i in range(20):
        n = u[0]
        while n > 0:
            x = x[::-1]
            n -= 1
    x[0] = 7
    return x


def alone_in_nested_loops(c: Any, u: Any) -> Any:
    x = c * 1
    for _i in range(20):
        n = u[0]
        while n > 0:
            x = x * 2
            n -= 1
    x[0] = 7
    return x


def view_of_another_before(c: Any, u: Any) -> Any:
    """Seed c716856: only without an iteration is it still the view of the array then written."""
    kept, v, i = c * 3, c[1:], 0
    while i < u[0]:
        v = kept[1:] if i > 2 else kept[:3]
        i += 1
    c[2] += 1.0
    return v


def _left_and_written(a: Any, n: Any) -> Any:
    for _ in range(n[0]):
        a = a + 1.0
    a[0] = 7.0
    return a


def lambda_holds_it(c: Any, n: Any) -> Any:
    return (lambda a: _left_and_written(a, n) + a)(c + 1.0)


def comprehension_holds_it(c: Any, n: Any) -> Any:
    return tuple([_left_and_written(a, n) + a for a in (c + 1.0, c + 2.0)])


def dict_comprehension_holds_it(c: Any, n: Any) -> Any:
    made = {k: _left_and_written(a, n) + a for k, a in enumerate((c + 1.0, c + 2.0))}
    return made[0], made[1]


def generator_holds_it(c: Any, n: Any) -> Any:
    def generate() -> Any:
        a = c + 1.0
        yield _left_and_written(a, n)
        yield a + 1.0

    return tuple(generate())


def closure_holds_it(c: Any, n: Any) -> Any:
    def make() -> Any:
        a = c + 1.0
        return lambda: a

    def use(held: Any) -> Any:
        return _left_and_written(held(), n), held() + 1.0

    return use(make())


PROGRAMS = [
    lambda_holds_it, comprehension_holds_it, dict_comprehension_holds_it, generator_holds_it,
    closure_holds_it, written_after, other_written_after, view_written_after, attribute_holds_it,
    caller_holds_it, list_holds_it, argument, two_names_at_the_end, two_names_in_the_loop,
    exchanged_and_written, alone, exit_after_exchanges, argument_in_nested_loops,
    alone_in_nested_loops, view_of_another_before,
]
# What must run whenever there is an iteration, since then the loop has made the array.
EXACT = {lambda_holds_it, comprehension_holds_it, generator_holds_it, written_after,
         other_written_after, view_written_after, attribute_holds_it,
         caller_holds_it, list_holds_it, argument, alone, alone_in_nested_loops}


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_numpy_or_refused(program: Callable[..., Any], trips: int) -> None:
    wanted_argument, argument_ = np.ones(4), np.ones(4)
    wanted = program(wanted_argument, np.array([trips]))
    try:
        found = fusec.jit(program)(argument_, np.array([trips]))
    except UnsupportedError:
        assert program not in EXACT or (trips == 0 and program is not alone)
        return
    pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(argument_, wanted_argument)


def merged_after_a_branch(x: Any, y: Any, a: Any, n: Any) -> Any:
    v = x[:8]
    if n % 3 == 0:
        for _e in x:
            v = a[2] if y[1] >= 0 else v[::1]
    v[1] += 1.0
    return v


@pytest.mark.parametrize("level", [-1.0, 1.0])
@pytest.mark.parametrize("n", [0, 1])
def test_a_loop_in_a_branch(level: float, n: int) -> None:
    """Fuzzer seed c501883: after the branch nobody knew that it might be an argument."""
    def arguments() -> list[Any]:
        return [np.arange(12.0), np.full(3, level), np.zeros((4, 8)), np.int64(n)]

    mine, numpys = arguments(), arguments()
    wanted = merged_after_a_branch(*numpys)
    try:
        found = fusec.jit(merged_after_a_branch)(*mine)
    except UnsupportedError:
        return
    np.testing.assert_array_equal(found, wanted)
    for a, b in zip(mine, numpys, strict=True):
        np.testing.assert_array_equal(a, b)
