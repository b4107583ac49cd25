"""A loop that Python runs while tracing, made into thousands of operations, is told of."""

from __future__ import annotations

import linecache
import warnings

import numpy as np
import pytest

import fusec
from fusec.errors import UnrolledWarning
from fusec.trace.facts.graph_length import MANY

X = np.arange(3.0)


def averaged(x, steps):
    for step in steps:
        x = x * 0.5 + step  # here
    return x


def test_the_line_the_count_and_the_cure():
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
