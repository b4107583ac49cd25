"""Lists made with a length whose items a loop writes, and tables of such: arrays of the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

X = np.arange(100) % 37 * 1.7 - 20
A, B = np.arange(40) * 7 % 13, np.arange(70) * 5 % 11


def in_branches(x: Any) -> Any:
    n = len(x)
    out, before = [0.0] * n, [0.0] * (n + 1)
    for i in range(n):
        if x[i] > 0:
            out[i] = x[i]
        elif i > 0:
            out[-i] += out[i - 1] - 1
        before[i + 1] = before[i] + x[i]
    return np.array(out), max(out), before[-1], sum(before), len(out), out[2:5]


def of_ints(x: Any) -> Any:
    counts, halves = [0] * 10, [0] * len(x)
    for i in range(len(x)):
        counts[int(x[i]) % 10] += 1
        if x[i] > 0:
            halves[i] = x[i] / 2
    return counts, counts[3] + 1, sum(halves), np.array(halves)


def lcs(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    t = [[0] * (m + 1) for _ in range(n + 1)]
    first = t[1]
    for i in range(1, n + 1):
        row, above = t[i], t[i - 1]
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                row[j] = above[j - 1] + 1
            else:
                row[j] = max(t[i - 1][j], t[i][j - 1])
    return t[n][m], t[-1], first, np.array(t)


def edit_distance(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    d = [[0] * (m + 1) for _ in range(n + 1)]
    for j in range(m + 1):
        d[0][j] = j
    for i in range(1, n + 1):
        d[i][0] = i
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
    return d[n][m], d[n - 1]


def insertion_sort(x: Any) -> Any:
    items = list(x)
    for i in range(1, len(items)):
        key, j = items[i], i - 1
        while j >= 0 and items[j] > key:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = key
    return np.array(items)


def until_data_says(x: Any) -> Any:
    out, i = [0.0] * len(x), 0
    while i < len(x) and x[i] < 30:
        out[i] = x[i] * 2
        i += 1
    return np.array(out), i


def put(items: Any, k: Any, value: Any) -> None:
    items[k] = value


def by_a_function(x: Any) -> Any:
    out = [0.0] * len(x)
    for i in range(len(x)):
        put(out, i, x[i] + sum(out))
    return np.array(out)


@pytest.mark.parametrize(("program", "arguments"), [
    (in_branches, (X,)), (of_ints, (X,)), (lcs, (A, B)), (edit_distance, (A, B)),
    (insertion_sort, (X,)), (until_data_says, (X,)), (by_a_function, (X,))],
    ids=lambda x: getattr(x, "__name__", ""))
def test_loops_of_the_graph(program: Any, arguments: Any) -> None:
    jitted: Any = fusec.jit(program)
    for _ in range(2):
        for a, b in zip(jitted(*arguments), program(*arguments), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(jitted.trace(*arguments).graph.nodes) < 500


def two_names(x: Any) -> Any:
    out = [0.0] * len(x)
    other = out
    for i in range(len(x)):
        out[i] = x[i] + other[i - 1]
    return other


def one_row(x: Any) -> Any:
    t = [[0.0] * len(x)] * len(x)
    for i in range(len(x)):
        t[i][i] = x[i]
    return t[3]


def row_afterwards(x: Any) -> Any:
    t = [[0.0] * 3 for _ in range(len(x))]
    row = t[0]
    for i in range(len(x)):
        row = t[i]
        row[1] = x[i]
    row[0] = 5.0
    return t[-1]


def held_by_an_attribute(x: Any) -> Any:
    kept = type(fusec)("kept")
    kept.items = out = [0.0] * len(x)
    for i in range(len(x)):
        out[i] = x[i] + kept.items[i - 1]
    return out


def several_at_once(x: Any) -> Any:
    out = [0.0] * len(x)
    for i in range(len(x)):
        out[i:i + 1] = [x[i]]
    return out


@pytest.mark.parametrize("program", [
    two_names, one_row, row_afterwards, held_by_an_attribute, several_at_once],
    ids=lambda f: f.__name__)
def test_what_python_runs(program: Any) -> None:
    x = X[:20]
    try:
        got = fusec.jit(program)(x)
    except fusec.UnsupportedError:
        assert program is held_by_an_attribute
        return
    np.testing.assert_allclose(got, program(x), rtol=1e-12)


def beyond(x: Any) -> Any:
    out = [0.0] * len(x)
    for i in range(len(x)):
        out[i + 1] = x[i]
    return out


def known(x: Any) -> Any:
    table = [0] * 128
    for k in range(128):
        table[k] = k * k << 60
    return x[: table[1] >> 58]


def test_errors_and_known_numbers() -> None:
    with pytest.raises(IndexError, match="list assignment index out of range"):
        fusec.jit(beyond)(X)
    np.testing.assert_array_equal(fusec.jit(known)(X), X[:4])
