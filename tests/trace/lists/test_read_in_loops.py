"""Lists that a loop of the graph appends to and reads: as Python's, and not written out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import fusec

N = 40  # more than are written out
X = np.random.default_rng(5).random(N)
ROWS = np.random.default_rng(6).random((N, 3))


def last(x):
    out = [1.0]
    for i in range(N):
        out.append(out[-1] * 0.5 + x[i])
    return out


def two_back(x):
    out = [x[0], x[1]]
    for v in x:
        out.append(out[-1] * 0.5 + out[-2] * 0.25 + v)
    return np.array(out), len(out), out[-1] + out[3]


def at_numbers(x):
    t, y = [0.0], [1.0]
    for i in range(1, N):
        t.append(t[-1] + 0.125)
        y.append(y[i - 1] + 0.125 * (x[i] - y[i - 1] + t[i - 1]))
    return t, np.array(y)


def at_any_number(x):
    out = [0, 1, 2]
    for v in x:
        out.append(out[int(v * len(out))] + int(v * 10) - out[-1 - int(v * 3)])
    return out


def of_empty(x):
    out = []
    for v in x:
        out.append(v + (out[-1] if out else 0.5))
    return np.array(out)


def windows(x):
    out = [1, 2, 3, 4]
    for v in x:
        c = out[-3:]
        out.append(int(v * 10) + c[0] * 2 - sum(out[-4:-2]) + out[2])
    return out


def window_that_fills(x):
    out = [1]
    for v in x:
        out.append((sum(out[-5:]) + int(v * 10)) % 17)
    return out


def window_between(x):
    out = [0.5, 1.5]
    for i in range(2, N):
        out.append(np.mean(out[i - 2:i]) + x[i])
    return out


def twice_an_iteration(x):
    out = [0.0]
    for v in x:
        out.append(out[-1] + v)
        out.append(out[-1] * out[-2])
    return out, len(out)


def after_appending(x):
    out = [x[0]]
    s = 0.0
    for v in x:
        out.append(v)
        s += out[-1] - out[-2] * out[0]
    return s, out


def in_a_branch(x):
    out, n = [x[0]], 0
    for v in x:
        if out[-1] > v:
            n += 1
        out.append(v + out[-1] * 0.25 if v > 0.5 else v)
    return n, out


def in_inner_loops(x):
    out = [1.0, 2.0]
    for v in x:
        s = 0.0
        for j in range(20):
            s += out[-1] * v + j + out[-2]
        out.append(s / 100)
    return out


def filled_by_inner_loops(x):
    out = [1.0]
    for i in range(20):
        for j in range(N):
            out.append(out[-1] * 0.5 + x[j] * i + out[j])
    return out


def by_a_function(x):
    out = [1.0, 2.0]

    def step(v):
        return out[-1] * v - out[-2]

    for v in x:
        out.append(step(v))
    return out


def given_to_a_function(x):
    def previous(items, k):
        return items[len(items) - k]

    out = [1.0, 2.0]
    for v in x:
        out.append(previous(out, 1) * v - previous(out, 2) * 0.5)
    return out


def of_tuples(x):
    out = [(0.0, 1)]
    for v in x:
        a, n = out[-1]
        out.append((a * 0.5 + v, n + 1))
    return out, out[-1][0]


def of_lists(x):
    out = [[0.0, x[1]]]
    for v in x:
        out.append([out[-1][1] * 0.5, v])
    return out


def states(x):
    out = [x[:3]]
    for i in range(1, N):
        s = out[-1]
        s = s * 0.5 + np.array([s[1], s[2], x[i]])
        out.append(s)
    return np.array(out), out[-1]


def rows_of_states(x):
    out = [np.zeros(4), np.ones(4)]
    for v in x:
        out.append(np.array(out[-2:]).mean(axis=0) * 0.9 + v)
    return out, np.stack(out).sum(axis=0)


def table(x):
    rows = [x[:4]]
    back = []
    for i in range(1, N):
        scores = rows[i - 1][:, None] - x[:4]
        back.append(np.argmin(scores, axis=0))
        rows.append(scores.min(axis=0) + x[i])
    path = [int(np.argmax(rows[-1]))]
    for b in reversed(back):
        path.append(int(b[path[-1]]))
    path.reverse()
    return np.array(path), path


def of_single_precision(x):
    y = x.astype(np.float32)
    out = [y[0]]
    for v in y:
        out.append(out[-1] * np.float32(0.5) + v)
    return out, np.array(out)


def ints_then_floats(x):
    out = [0]
    for v in x:
        out.append(float(out[-1] + v))
    return out


def of_known_numbers(x):
    fib = [0, 1]
    for _ in range(100):
        fib.append(fib[-1] + fib[-2])
    return fib[100], x[0]


def used_as_a_whole(x):
    out = [0.0]
    for i in range(20):
        out.append(sum(out) * 0.5 + x[i])
    return out


def as_an_index(x):
    """As tokens look up their vectors."""
    places = [0, 3]
    for _ in range(N - 2):
        rows, seen = ROWS[places], x[places]
        places.append(int(rows.sum() * 7 + seen.sum() * 11) % N)
    return places


def changed_otherwise(x):
    out = [0.0, 1.0]
    for i in range(20):
        out.append(out[-1] + x[i])
        out.pop(0)
    return out


def with_another_name(x):
    out = [0.0]
    other = out
    for i in range(20):
        out.append(other[-1] + x[i])
    return out, other[3]


def named_in_the_loop(x):
    out = [0.0]
    for i in range(20):
        other = out
        out.append(out[-1] + x[i])
    return out, other[5]


def in_two_loops(x):
    out = [0.5]
    for v in x:
        out.append(out[-1] * v)
    for _ in x:
        out.append(out[-1] + out[-N])
    return out, np.array(out), np.array(out[::-1])[2:5]


PROGRAMS = [
    last, two_back, at_numbers, at_any_number, of_empty, windows, window_that_fills, window_between,
    twice_an_iteration, after_appending, in_a_branch, in_inner_loops, filled_by_inner_loops,
    by_a_function, given_to_a_function, of_tuples, of_lists, states, rows_of_states, table,
    of_single_precision, ints_then_floats, in_two_loops]
WRITTEN_OUT = [of_known_numbers, used_as_a_whole, as_an_index, changed_otherwise, with_another_name,
               named_in_the_loop]


def kinds(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x), [kinds(item) for item in x]
    return (type(x), x.dtype, x.shape) if isinstance(x, np.ndarray) else type(x)


def check(program: Any) -> Any:
    compiled = fusec.jit(program)
    for x in (X, X * 0.5 + 0.25):
        expected, got = program(x.copy()), compiled(x.copy())
        assert kinds(got) == kinds(expected)
        for a, b in zip(flat(got), flat(expected), strict=True):
            if type(b) is int:
                assert a == b
            else:
                np.testing.assert_allclose(
                    a, b, rtol=1e-5 if program is of_single_precision else 1e-9)
    return compiled


def flat(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in flat(item)] if isinstance(x, (list, tuple)) else [x]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_lists_are_pythons(program: Any) -> None:
    compiled = check(program)
    assert len(compiled.trace(X.copy()).graph.nodes) < 150


@pytest.mark.parametrize("program", WRITTEN_OUT, ids=lambda f: f.__name__)
def test_lists_that_python_keeps(program: Any) -> None:
    check(program)


def long_list(x):
    out = [0.0]
    for i in range(1, len(x)):
        out.append(out[-1] + 0.01 * (x[i] - out[i - 1]))
    return out, np.array(out)


def test_a_first_call_does_not_grow() -> None:
    x = np.random.default_rng(9).random(30_000)
    fusec.jit(long_list)(X)
    begun = time.process_time()
    got = fusec.jit(long_list)(x)
    assert time.process_time() - begun < 2.0  # minutes, item by item
    expected = long_list(x)
    assert kinds(got) == kinds(expected)
    np.testing.assert_allclose(got[0], expected[0])
    np.testing.assert_allclose(got[1], expected[1])


def test_a_list_that_the_loop_leaves_alone() -> None:
    def f(x: Any) -> Any:
        n, log = 0, []

        def same(v: Any) -> Any:
            return v

        log.append(abs(x.sum()))
        for v in x:  # noqa: B007
            for k in range(n % 4):  # noqa: B007
                log.append  # noqa: B018 (looked at, no more)
        return log

    assert fusec.jit(f)(X) == f(X)


def integers_before_floats(x):
    acc, log = 0.0, [0]
    for _ in range(N):
        log.append(x.mean())
        acc = len(log)  # a float before, so the body is traced again
    return log, acc


def in_a_loop_within(x):
    acc, log = 0.0, [0]
    for i in range(N):
        for k in range(N):
            log.append(x[k] + i)
            acc = len(log)
        log.append(x[i] * acc)
    return log, acc


def of_pairs(x):
    acc, log = 0, [(0, 1)]
    for k in range(N):
        log.append((x[k], k))
        acc = acc + log[-1][0] * 0.5
    return log, acc


@pytest.mark.parametrize("program", [integers_before_floats, in_a_loop_within, of_pairs])
def test_items_that_no_item_before_can_hold(program: Any) -> None:
    log, acc = fusec.jit(program)(X)
    wanted, last = program(X)
    np.testing.assert_array_equal(np.array(log), np.array(wanted))
    assert acc == last


def where_data_goes_on(x):
    log = [0.0]
    for i in range(20):
        if x[0] > 0:
            continue
        for _ in range(3):
            log.append(x[1] + i)
    return log


def in_a_loop_in_a_branch(x):
    log, n = [x * 1.0], 0
    for i in range(20):
        if x[0] < 0:
            for _ in range(30):
                log.append(x + i)
                n = len(log)
    return log, n


@pytest.mark.parametrize("program", [where_data_goes_on, in_a_loop_in_a_branch])
def test_loops_in_a_branch_that_append(program: Any) -> None:
    with pytest.raises(fusec.ConcreteValueError, match="in a branch or loop that data decides"):
        fusec.jit(program)(X.copy())
