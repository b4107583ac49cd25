"""``np.polyval`` of many coefficients: a loop, bit for bit NumPy's where nothing is contracted."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

X = np.array([-1.25, -0.0, 0.5, 1.0, np.inf, np.nan])
EVALUATE = fusec.jit(lambda p, x: np.polyval(p, x), fp="strict")


@pytest.mark.parametrize("x", [X, X[1], X.astype(np.float32), np.arange(-2, 3, dtype=np.int8)])
@pytest.mark.parametrize("p", [
    np.arange(40) - 20, np.linspace(-1, 1, 17), np.full(30, -0.0), np.ones(3), np.ones(50, "f4"),
    np.exp(1j * np.arange(20))])
def test_numpys_bits(p: np.ndarray, x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        got, want = EVALUATE(p, x), np.polyval(p, x)
    assert type(got) is type(want) and got.dtype == want.dtype
    if want.dtype.kind == "c":
        np.testing.assert_allclose(got, want, rtol=1e-13)
    else:
        assert got.tobytes() == want.tobytes() or np.isnan(want).any()
        np.testing.assert_array_equal(got, want)


def test_a_loop_of_any_length() -> None:
    graph = fusec.jit(lambda p, x: np.polyval(p, x)).trace(np.ones(5000), X).graph
    assert [node.op for node in graph.nodes].count("Loop") == 1 and len(graph.nodes) < 40
