"""A loop that Python runs while tracing, made into thousands of operations, is told of."""

from __future__ import annotations

import linecache
import warnings

import numpy as np
import pytest

import fusec
from fusec.errors import UnrolledWarning
from fusec.trace.control import unrolling
from fusec.trace.facts.graph_length import MANY

X = np.arange(3.0)


def averaged(x, steps):
    for step in steps:
        x = x * 0.5 + step  # here
    return x


def test_the_line_the_count_and_the_cure(monkeypatch):
    monkeypatch.setattr(unrolling, "SLOW", 1e9)
    table = [X + k for k in range(MANY // 2)]
    with pytest.warns(UnrolledWarning, match="stack") as found:
        got = fusec.jit(averaged).trace(X, table)
    assert len(got.traced.graph.nodes) >= MANY
    [warning] = found
    assert warning.filename == __file__
    assert linecache.getline(__file__, warning.lineno).rstrip().endswith("# here")
    assert f"{MANY:,} operations, {MANY:,} of them here" in str(warning.message)


def test_a_loop_over_rows_of_one_array_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = fusec.jit(averaged)(X, np.stack([X] * MANY))
    np.testing.assert_allclose(got, 2 * X, rtol=1e-12)


def generated(x, steps):
    kept = [x]
    for _ in range(steps):  # grows
        kept.append(kept[-1] * 0.5 + sum(kept)[0])
    return kept[-1]


def test_a_slow_loop_is_told_of_while_it_is_traced(monkeypatch):
    monkeypatch.setattr(unrolling, "SLOW", 0.0)
    with pytest.warns(UnrolledWarning, match="reads? as a whole|'kept'") as found:
        fusec.jit(generated).trace(X, 40)
    [warning] = found
    assert linecache.getline(__file__, warning.lineno).rstrip().endswith("# grows")
    assert "Cure: " in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnrolledWarning)
        with pytest.raises(UnrolledWarning):  # before the rest is traced
            fusec.jit(generated).trace(X, 100_000)
