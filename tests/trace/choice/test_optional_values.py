"""Variables and results that are None or something else, as data decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import Tolerance, assert_outcomes, clone, run

import fusec
from fusec.errors import FusecError, UnsupportedError

R = np.random.default_rng(0)
SHORT, LONG = R.standard_normal(9), R.standard_normal(300)
SIGNED = [(SHORT,), (-SHORT,), (np.abs(SHORT) + 3,), (-np.abs(SHORT),)]
LIMITS = [(x, t) for x in (SHORT, LONG) for t in (0.3, 9.0, -9.0)]


def largest_above(x: Any, t: Any) -> Any:
    best = None
    for v in x:
        if v > t and (best is None or v > best):
            best = v
    return best


def first_above(x: Any, t: Any) -> Any:
    for i in range(len(x)):
        if x[i] > t:
            return i
    return None


def first_pair(x: Any, t: Any) -> Any:
    for i in range(len(x)):
        if x[i] > t:
            return x[i], i
    return None


def calls_it(x: Any, t: Any) -> Any:
    found = first_pair(x, t)
    if found is None:
        return -x[0], -1
    value, i = found
    return value * i, i


def takes_it_apart(x: Any, t: Any) -> Any:
    value, i = first_pair(x, t)
    return value * i


def gap(x: Any, t: Any) -> Any:
    low = high = None
    for v in x:
        if v > t:
            low = v if low is None else min(low, v)
        else:
            high = v if high is None or v > high else high
    if low is None:
        return high
    if high is None:
        return low
    return low - high


def needs_it(x: Any, t: Any) -> Any:
    return largest_above(x, t) + 1


def calls_a_function(x: Any, t: Any) -> Any:
    return np.sqrt(largest_above(x, t)), math.floor(largest_above(x, t))


def searches(x: Any, t: Any) -> Any:
    i, found = 0, None
    while found is None and i < len(x):
        if x[i] > t:
            found = i
        i += 1
    return found, i


@pytest.mark.parametrize("program", [
    largest_above, first_above, first_pair, calls_it, takes_it_apart, gap, needs_it,
    calls_a_function, searches])
def test_searches(program: Any) -> None:
    agree(program, LIMITS)


def runs(x: Any) -> Any:
    start, count, total = None, 0, 0
    for i in range(len(x)):
        if x[i] > 0:
            if start is None:
                start = i
        elif start is not None:
            count, total, start = count + 1, total + i - start, None
    if start is not None:
        total += len(x) - start
    return count, total


def steps(x: Any) -> Any:
    last, total = None, 0.0
    for v in x:
        if last is not None:
            total += abs(v - last)
        last = v
    return total, last


def rows(x: Any) -> Any:
    before, out = None, np.zeros(len(x))
    for i in range(len(x)):
        row = x[i] * np.ones(3)
        out[i] = 0 if before is None else (row - before).sum()
        before = row
    return out, before


def states(x: Any) -> Any:
    state = (None, 0)
    for v in x:
        before, n = state
        state = (v, n + (before is not None and v > before))
    return state


def halves(x: Any) -> Any:
    last, n = None, 0
    while last is None or abs(x.sum() - last) > 1e-3:
        last = x.sum()
        x = x / 2
        n += 1
    return x, n


@pytest.mark.parametrize("program", [runs, steps, rows, states, halves])
def test_carried_by_loops(program: Any) -> None:
    agree(program, [*SIGNED, (LONG,), (-LONG,), (SHORT[:1],)])


def root(x: Any) -> Any:
    return None if x.sum() < 0 else np.sqrt(np.abs(x))


def listed(x: Any) -> Any:
    return [v if v > 0 else None for v in x], {"a": x[0] if x[0] > 0 else None}


def exchanged(x: Any) -> Any:
    a, b = None, x
    if x[0] > 0:
        a, b = b, a
    return a, b


def view(x: Any) -> Any:
    part = None
    if x[0] > 0:
        part = x[1:3]
    if part is not None:
        part[:] = 7
    return part


def compared(x: Any) -> Any:
    b = x[0] if x[0] > 0 else None
    return not b, b is None, b is not None, bool(b is not None and b > 1), bool(b != 3.0)


def compared_with_a_number(x: Any) -> Any:
    b = x[0] if x[0] > 0 else None
    return bool(b == x[0]), bool(b != x[0]), b == None  # noqa: E711


def otherwise(x: Any) -> Any:
    b = x if x[0] > 0 else None
    return (np.zeros(2) if b is None else b[:2]), -x[0] if b is None else b.sum()


def argument(x: Any, y: Any = None) -> Any:
    if y is None:
        y = x + 1
    if x[0] > 0:
        y = None
    return y


@pytest.mark.parametrize("program", [
    root, listed, exchanged, view, compared, compared_with_a_number, otherwise, argument])
def test_branches(program: Any) -> None:
    agree(program, SIGNED)


def item(x: Any) -> Any:
    b = x if x[0] > 0 else None
    return b[0]


def attribute(x: Any) -> Any:
    b = x if x[0] > 0 else None
    return b.sum()


def length(x: Any) -> Any:
    b = x if x[0] > 0 else None
    return len(b)


def iterated(x: Any) -> Any:
    b = x if x[0] > 0 else None
    return [v * 2 for v in b]


def written(x: Any) -> Any:
    b = x if x[0] > 0 else None
    b[0] = 3
    return b


def ordered(x: Any) -> Any:
    b = x[0] if x[0] > 0 else None
    return bool(b < 3)


def negated(x: Any) -> Any:
    b = x[0] if x[0] > 0 else None
    return -b


@pytest.mark.parametrize("program", [
    item, attribute, length, iterated, written, ordered, negated])
def test_uses_of_none_raise_as_in_python(program: Any) -> None:
    """With the same words."""
    jitted = agree(program, SIGNED)
    with pytest.raises((TypeError, AttributeError)) as eager:
        program(-np.abs(SHORT))
    with pytest.raises(type(eager.value)) as compiled:
        jitted(-np.abs(SHORT))
    assert str(compiled.value).startswith(str(eager.value))


def test_operands_are_named_in_the_message() -> None:
    with pytest.raises(TypeError, match=r"for \+: 'NoneType' and 'int'"):
        fusec.jit(needs_it)(SHORT, 9.0)


class Tracker:
    def __init__(self) -> None:
        self.best: Any = None
        self.at: Any = None

    def feed(self, x: Any) -> Any:
        for i, v in enumerate(x):
            if self.best is None or v < self.best:
                self.best, self.at = v, i
        return self.best

    def forget(self, x: Any) -> None:
        if x[0] > 0:
            self.best = None


def test_attributes() -> None:
    eager, own = Tracker(), Tracker()
    feed, forget = fusec.jit(Tracker.feed), fusec.jit(Tracker.forget)
    for x in (SHORT, -LONG, LONG, SHORT):
        assert feed(own, x) == eager.feed(x)
        assert (own.best, own.at) == (eager.best, eager.at)
        forget(own, x)
        eager.forget(x)
        assert own.best == eager.best
        assert own.best is None or type(own.best) is type(eager.best)


def pivots(a: Any) -> Any:
    """Gauss and Jordan's inverse; None of a singular matrix."""
    a, n = a.copy(), len(a)
    inverse = np.eye(n)
    for c in range(n):
        p = None
        for r in range(c, n):
            if abs(a[r, c]) > 1e-12:
                p = r
                break
        if p is None:
            return None
        if p != c:
            a[[c, p]], inverse[[c, p]] = a[[p, c]], inverse[[p, c]]
        scale = a[c, c]
        a[c] /= scale
        inverse[c] /= scale
        for r in range(n):
            if r != c:
                factor = a[r, c]
                a[r] -= factor * a[c]
                inverse[r] -= factor * inverse[c]
    return inverse


def test_matrices_without_an_inverse() -> None:
    agree(pivots, [(np.array([[0.0, 1], [2, 3]]),), (np.array([[1.0, 2], [2, 4]]),),
                   (R.standard_normal((6, 6)),), (np.ones((6, 6)),)], Close())


def text(x: Any) -> Any:
    b = x[0] if x[0] > 0 else None
    return f"{b}"


def kind(x: Any) -> Any:
    b = x[0] if x[0] > 0 else None
    return isinstance(b, float)


def part(x: Any) -> Any:
    b = 2 if x[0] > 0 else None
    return x[:b]


def axis(x: Any) -> Any:
    return np.sum(x, axis=0 if x[0] > 0 else None)


WITHOUT_SOURCE: dict[str, Any] = {"np": np}
exec("def function(v): return np.float64(1.0) if v is None else v", WITHOUT_SOURCE)
without_source = WITHOUT_SOURCE["function"]


def given_away(x: Any) -> Any:
    return without_source(x[0] if x[0] > 0 else None)


def to_a_lambda(x: Any) -> Any:
    function = np.sqrt if x[0] > 0 else None
    use = lambda v: v if v is not None else -x[1]  # noqa: E731
    b = x[0] if x[0] > 0 else None
    return use(b) if function is None else function(use(b))


def test_functions_see_the_value() -> None:
    agree(to_a_lambda, SIGNED)
    agree(given_away, SIGNED)  # to a function that is rebuilt from its bytecode


@pytest.mark.parametrize("program", [text, kind, part, axis])
def test_what_none_means_something_to_is_refused(program: Any) -> None:
    with pytest.raises(UnsupportedError, match="data makes None or not"):
        fusec.jit(program)(SHORT)


def stored(x: Any) -> Any:
    out = np.zeros(2)
    out[0] = x[0] if x[0] > 0 else None
    return out


def indexed(x: Any) -> Any:
    return x[2 if x[0] > 0 else None]


@pytest.mark.parametrize("program", [stored, indexed])
def test_what_numpy_makes_of_none_raises(program: Any) -> None:
    """NumPy would store NaN, and insert an axis."""
    jitted = fusec.jit(program)
    x = np.abs(SHORT)
    np.testing.assert_array_equal(jitted(x), program(x))
    with pytest.raises(TypeError, match="must not be None"):
        jitted(-x)


def two_kinds(x: Any) -> Any:
    b = None
    if x[0] > 0:
        b = x
    if x[1] > 0:
        b = x[:2]
    return b


def test_sides_that_disagree_are_named() -> None:
    with pytest.raises(FusecError, match=r"None or f64\[9\]"):
        fusec.jit(two_kinds)(SHORT)


class Close(Tolerance):
    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        np.testing.assert_allclose(got, want, rtol=1e-9, err_msg=what)


def agree(program: Any, calls: list[tuple[Any, ...]], tolerance: Any = None) -> Any:
    """One compiled function gives Python's results in all calls."""
    jitted = fusec.jit(program)
    for args in calls:
        got, want = run(jitted, args), run(program, args)
        for outcome in (got, want):  # an array that data chooses is a copy
            outcome.result = clone(outcome.result)
        assert_outcomes(got, want, tolerance or Tolerance(), what=f"{program.__name__}{args}")
    return jitted


def both_none(x: Any) -> Any:
    a = x[0] if x[0] > 0 else None
    b = x[1] if x[1] > 0 else None
    return bool(a == b), bool(a != b), bool(a)


def test_two_that_may_be_none_are_compared() -> None:
    agree(both_none, [*SIGNED, (np.array([1.0, 1]),), (np.array([-1.0, 1]),)])


def matched(x: Any) -> Any:
    match x[0] if x[0] > 0 else None:
        case None:
            return x[1]
        case 3.0:
            return x[2]
    return x[0]


def test_matched_with_none() -> None:
    agree(matched, [*SIGNED, (np.array([3.0, 1, 2]),), (np.array([-1.0, 1, 2]),)])


@pytest.mark.parametrize("program", [
    lambda x: [x[0] if x[0] > 0 else None] == [None],
    lambda x: {None: 1}.get(x[0] if x[0] > 0 else None, 2)])
def test_containers_that_python_compares_are_refused(program: Any) -> None:
    with pytest.raises(FusecError, match="data makes None or not"):
        fusec.jit(program)(SHORT)
