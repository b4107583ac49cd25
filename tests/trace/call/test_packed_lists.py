"""Long lists, tuples and dicts of numbers as arguments: one array each, lists to programs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.call import packed_lists
from fusec.trace.call.packed_lists import MOST_APART

N = MOST_APART + 36
FLOATS = [float(k * 7 % 13) - 3 for k in range(N)]
INTS = [k * 7 % 13 - 3 for k in range(N)]
POINTS = [(float(k), float(k * k)) for k in range(N)]
EDGES = [(k, k * 3 % N, k * 0.5) for k in range(N)]
BY_NUMBER = {k: k * 2.0 for k in range(N)}
TABLE = [[k * 10.0 + j for j in range(10)] for k in range(20)]


def same(a: Any, b: Any) -> bool:
    """Whether two results are of one structure, the same types and close numbers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, str):
        return bool(a == b)
    return getattr(a, "dtype", None) == getattr(b, "dtype", None) and bool(np.allclose(a, b))


def as_lists(xs: Any) -> Any:
    total = 0
    for k, v in enumerate(xs):
        total += v * k
    return (xs, len(xs), total, sum(xs), max(xs), xs[3], xs[-1], xs[1:4], np.array(xs) * 2,
            type(xs[0]) is float, isinstance(xs[0], int), [v / 2 for v in xs])


def with_ints(xs: Any) -> Any:
    h = 0
    for v in xs:
        h = (h * 31 + v) & 0xFFFF
    return h, [v // 2 for v in xs][:3], np.arange(100.0)[list(xs)], [*map(float, xs)][:2]


def of_points(points: Any) -> Any:
    total = 0.0
    for x, y in points:
        total += x * y
    return total, np.array(points).sum(axis=0), points[2], points


def of_edges(edges: Any) -> Any:
    w = np.zeros(N)
    for a, b, c in edges:
        w[b] += c * a
    return w, edges[1], edges


def of_a_dict(d: Any) -> Any:
    return d[5], sum(d.values()), len(d), list(d)[:3], {k: v * 2 for k, v in d.items()}


def of_rows(m: Any) -> Any:
    return np.array(m).T, m[3][4], m[1], len(m[0]), sum(sum(row) for row in m), m


def of_parts(p: Any, *, q: Any) -> Any:
    return p["a"], sum(p["b"][1]), sum(q), p["b"][0]


@pytest.mark.parametrize(("fn", "arguments"), [
    (as_lists, [FLOATS, tuple(FLOATS), [np.float32(v) for v in FLOATS]]),
    (of_points, [POINTS]),
    (of_a_dict, [BY_NUMBER, {str(k): k / 2 for k in range(N)} | {5: 1.0}]), (of_rows, [TABLE])],
    ids=lambda x: getattr(x, "__name__", ""))
def test_what_lists_hold(fn: Callable[..., Any], arguments: list[Any]) -> None:
    jitted: Any = fusec.jit(fn)
    for x in arguments:
        for _ in range(2):
            assert same(jitted(x), fn(x))
    of = jitted.trace(arguments[0]).graph.inputs
    assert len(of) <= 3  # columns; each number was an input or a constant


@pytest.mark.parametrize(("fn", "x"), [(with_ints, INTS), (with_ints, tuple(INTS)), (
    of_edges, EDGES)])
def test_many_ints(fn: Callable[..., Any], x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_lists, "MOST_INTS", MOST_APART)
    jitted: Any = fusec.jit(fn)
    for _ in range(2):
        assert same(jitted(x), fn(x))
    assert len(jitted.trace(x).graph.inputs) <= 3


def test_where_they_lie() -> None:
    p: Any = {"a": FLOATS, "b": (TABLE, FLOATS)}
    jitted: Any = fusec.jit(of_parts)
    for _ in range(2):
        assert same(jitted(p, q=FLOATS), of_parts(p, q=FLOATS))
    longer = [*FLOATS, 1.5]
    assert same(jitted(p, q=longer), of_parts(p, q=longer))
    assert jitted(p, q=[2.0] * 3)[2] == 6.0


def of_sizes(xs: Any) -> Any:
    return "a" * abs(xs[3]), xs


def added(xs: Any) -> Any:
    return sum(xs)


def in_python(xs: Any, p: Any) -> Any:
    p[0] += 1
    return (p.sum(axis=xs[2]), set(xs[:3]), np.arange(24).reshape(xs[0], xs[1]), f"{xs[3]}",
            sum(xs), p[xs[4]])


def test_ints_are_what_they_are_in_python_where_that_needs_them() -> None:
    jitted: Any = fusec.jit(in_python)
    for xs in ([4, 6, 0, 3, 1, 2, 7] + [1] * N, (6, 4, 1, 3, 0) + (5,) * N):
        for _ in range(2):
            p, q = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
            for a, b in zip(jitted(xs, p), in_python(xs, q), strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(p, q)


def test_ints_that_python_needs() -> None:
    jitted: Any = fusec.jit(of_sizes)
    for xs in (INTS, INTS[::-1], INTS):
        assert same(jitted(xs), of_sizes(xs))
    large: Any = fusec.jit(added)
    assert large([1 << 62] * N) == N << 62  # Python's ints have any number of bits
    assert large([1 << 70] * N) == N << 70
    assert fusec.jit(added, static=("xs",))(FLOATS) == sum(FLOATS)
    assert fusec.jit(added, reduce_retracing=False)(INTS) == sum(INTS)


def changed(xs: Any) -> Any:
    xs[0] = 1.0
    return xs[0]


def asked(xs: Any) -> Any:
    return 1.0 if xs.index(3.0) else 2.0


def test_messages() -> None:
    with pytest.raises(fusec.UnsupportedError, match="changing a list that is an argument"):
        fusec.jit(changed)(copy.copy(FLOATS))
    with pytest.raises(fusec.ConcreteValueError, match=r"make xs static"):
        fusec.jit(asked)(FLOATS)
    with pytest.warns(fusec.FirstCallWarning, match=r"argument xs of length holds 60,000"):
        assert fusec.jit(length)([None] * 60_000) == 60_000


def length(xs: Any) -> Any:
    return len(xs)


def test_lists_that_hold_themselves_are_refused_at_once() -> None:
    one: list[Any] = []
    one.append(one)
    many: list[Any] = []
    many += [many] * 300
    turns: list[Any] = []
    turns += [[turns] * 100] * 100
    for x in (one, many, turns, {"a": one, "b": FLOATS}):
        with pytest.raises(fusec.UnsupportedError, match="lies in hundreds of others"):
            fusec.jit(length)(x)
