"""Lists that long loops append to: collected in arrays, the same lists afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.random.default_rng(2).normal(size=30)


def path(x):
    a, b, seen = x[0], 0.0, []
    for _ in range(40):
        a, b = a * 0.9 + b * 0.1, b + a * 0.01
        seen.append((a, b))
    return np.array(seen)


def scalars(x):
    sums, counts = [], []
    s = 0.0
    for i in range(25):
        s += x[i]
        sums.append(s)
        counts.append(i * 2)
    return np.array(sums), np.array(counts), sums[3], counts[-1] + len(sums)


def arrays(x):
    rows = []
    for i in range(30):
        x = np.roll(x, 1) * 0.5 + i
        rows.append(x)
    rows[2][0] = 100.0
    return np.array(rows), np.stack(rows[:3]), rows[-1], len(rows)


def result(x):
    found = [x.sum()]
    for i in range(20):
        found.append(x[i] * found[0])
    return found


def results(x):
    found = []
    for i in range(20):
        found.append({"value": x[i], "twice": (x[i] * 2, i)})
    return found[4], sum(f["value"] for f in found)


def twice_per_iteration(x):
    found = []
    for i in range(20):
        found.append(x[i])
        found.append(-x[i])
    return np.array(found)


def widened(x):
    value, found = 1, []
    for i in range(20):
        found.append(value)
        value = value + x[i]
    return np.array(found)


def in_a_branch(x):
    found = []
    for i in range(20):
        if i % 3 == 0:
            found.append(x[i])
    return np.array(found)


def read_in_the_loop(x):
    found = [0.5]
    for i in range(20):
        found.append(found[-1] * 0.5 + x[i])
    return np.array(found)


def aliased(x):
    found = []
    same = found
    for i in range(20):
        found.append(x[i] + len(same))
    return np.array(same)


def nested(x):
    table = []
    for i in range(20):
        row = []
        for j in range(25):
            row.append(x[i] * x[j])
        table.append(sum(row[:3]))
    return np.array(table)


def outer_list(x):
    table = []
    for i in range(18):
        for j in range(20):
            table.append(x[i] - x[j])
    return np.array(table)


def left_early(x):
    found = []
    for i in range(30):
        if x[i] > 1.5:
            break
        found.append(x[i])
    return len(found)


def exactly(x):
    found = []
    for i in range(30):
        found.append(np.float32(1.5) * i)
    found.pop()
    return found[3], np.array(found)


PROGRAMS: list[Callable[..., Any]] = [
    path, scalars, arrays, result, results, twice_per_iteration, widened, read_in_the_loop,
    aliased, nested, outer_list, exactly,
]


def leaves(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    return [y for i in x for y in leaves(i)] if isinstance(x, (tuple, list)) else [x]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_kinds(program: Callable[..., Any]) -> None:
    compiled = fusec.jit(program)
    for _ in range(2):
        got, want = compiled(X.copy()), program(X.copy())
        assert type(got) is type(want)
        assert len(leaves(got)) == len(leaves(want))
        for a, b in zip(leaves(got), leaves(want), strict=True):
            assert type(a) is type(b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_appends_in_branches_that_python_decides_are_unrolled() -> None:
    compiled = fusec.jit(in_a_branch)
    np.testing.assert_array_equal(compiled(X), in_a_branch(X))


def test_a_long_path_is_one_loop_and_no_list_of_nodes() -> None:
    compiled = fusec.jit(path)
    compiled(X)
    trace = compiled.traces[0]
    assert [n.op for n in trace.graph.nodes].count("Loop") == 1
    assert len(trace.graph.nodes) < 30
    assert [c.is_native for c in trace.control] == [True]


def test_a_loop_that_data_leaves_says_what_it_cannot_do() -> None:
    with pytest.raises(fusec.errors.FusecError):
        fusec.jit(left_early)(X)
