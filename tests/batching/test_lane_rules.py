"""Every row has a rule of lanes, or the reason why there is none; and the rules that no program of
the corpus reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError
from fusec.ops import Op, all_ops
from fusec.ops.batching import Alone, InGraph, NoLanes, declare
from fusec.trace import tracer  # noqa: F401 (all rows are there)

ROWS = list(all_ops())
WITH_GRAPHS = {"GivenDerivative"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_a_rule_or_a_reason(row: Op) -> None:
    rule: Any = row.batching
    if isinstance(rule, Alone | NoLanes):
        assert len(rule.reason.split()) > 5 and not rule.reason.endswith(".")
    elif isinstance(rule, InGraph):
        assert row.name in WITH_GRAPHS
    else:
        assert callable(rule)


def test_a_second_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        declare(Alone("it is one more rule for the row"), "Add")


X = np.random.default_rng(3).normal(size=(5, 4))
CALLS: list[Callable[..., Any]] = [
    lambda x: np.linalg.qr(x.reshape(2, 2))[1], lambda x: np.linalg.norm(x.reshape(2, 2), axis=1),
    lambda x: np.linalg.tensorinv(x.reshape(2, 2) + 3 * np.eye(2), ind=1),
    lambda x: np.fft.ifft2(x.reshape(2, 2), axes=(0, -1)).real,
    lambda x: np.fft.fftn(x.reshape(2, 2), axes=(0,)).imag, lambda x: np.fft.rfftn(x).real,
    lambda x: np.fft.hfft(x), lambda x: np.nancumsum(x), lambda x: np.nanmedian(x),
    lambda x: np.argpartition(x, 2)[2], lambda x: np.lexsort((x, x > 0)),
    lambda x: np.isin(x > 0, [True]), lambda x: np.vander(x, 3),
    lambda x: np.histogram_bin_edges(x, bins=3), lambda x: np.unravel_index(2, (2, 2))[0] + x,
    lambda x: np.bincount((x > 0).astype(int), minlength=2),
    lambda x: np.choose([0, 1, 1, 0], [x, -x]),
    lambda x: np.packbits(x > 0), lambda x: np.correlate(x, x[:2]), lambda x: np.nanargmax(x),
    lambda x: np.linalg.multi_dot([x.reshape(2, 2)] * 3), lambda x: np.roll(x, 1) + np.flip(x),
    lambda x: np.tri(4) @ x, lambda x: np.apply_over_axes(np.sum, x.reshape(2, 2), [0]),
    lambda x: np.cross(x[:3], x[1:]), lambda x: np.einsum("ii", x.reshape(2, 2)),
    lambda x: np.dot(x.reshape(1, 2, 2), x.reshape(2, 2)), lambda x: np.pad(x, 1),
    lambda x: np.linalg.eigvalsh(x.reshape(2, 2)), lambda x: np.repeat(x, 2),
    lambda x: np.quantile(x, [0.1, 0.6]), lambda x: np.compress(x > 0, x).sum(),
    lambda x: np.bitwise_count(np.abs(x * 9).astype(np.uint8)), lambda x: np.spacing(x),
]


@pytest.mark.repeats
@pytest.mark.parametrize("f", CALLS, ids=range(len(CALLS)))
def test_calls_in_lanes(f: Callable[..., Any]) -> None:
    want = np.stack([f(x) for x in X])
    got = fusec.vmap(f)(X)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_a_product_of_one_matrix_is_one_product() -> None:
    """A stack of vectors is the rows of one product, not a product for each."""
    def f(x: Any) -> Any:
        return np.ones((3, 4)) @ x

    graph = fusec.jit(fusec.vmap(f)).trace(X).graph
    assert [v.type.rank for n in graph.nodes if n.op == "MatMul" for v in n.inputs] == [2, 2]
    assert not any(n.op == "Loop" for n in graph.nodes)


def test_straight_parts_stay_out_of_the_loop() -> None:
    """Sines before the loop and the product after it are those of all lanes."""
    def f(x: Any) -> Any:
        s = np.sin(x).sum()
        while s > 0.5:
            s = s / 2
        return np.ones((3, 4)) @ (x * s)

    graph = fusec.jit(fusec.vmap(f)).trace(X).graph
    (loop,) = (n for n in graph.nodes if n.op == "Loop")
    assert {"Sin", "MatMul"} <= {n.op for n in graph.nodes}
    assert not {"Sin", "MatMul", "Mul"} & {n.op for n in loop.attrs["body"].nodes}


def test_explain_tells_the_choices() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x) / np.exp(x).sum() if x[0] > 0 else -x
        s = x[1]
        while s > 0.5:
            s = s / 2
        return y, s

    text = str(fusec.explain(fusec.vmap(f), X))
    line = f(X[0]) and f.__code__.co_firstlineno
    assert f"the branch at {__file__}:{line + 1}: both sides for all lanes" in text
    assert f"in a loop over lanes: a loop at {__file__}:{line + 3}: each lane goes" in text
    assert "one native function, its lanes on several threads" in text


def test_what_counts_into_as_many_counters_in_each_lane() -> None:
    def into_an_array(x: Any) -> Any:
        n = np.zeros(5, int)
        np.add.at(n, x, 1)
        return n

    given = np.array([[1, 2, 2], [0, 4, 4]])
    want = [np.bincount(x, minlength=5) for x in given]
    with pytest.raises(UnsupportedError, match=r"count into an array.*x % 5, minlength=5"):
        fusec.vmap(lambda x: np.bincount(x, minlength=5))(given)
    for f in (into_an_array, lambda x: np.bincount(x % 5, minlength=5)):
        np.testing.assert_array_equal(fusec.vmap(f)(given), want)


def test_a_branch_that_raises_is_done_one_by_one() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i] if i < 4 else x.sum()

    i = np.array([0, 3, 4, 9, 2])
    want = [f(x, k) for x, k in zip(X, i, strict=True)]
    np.testing.assert_allclose(fusec.vmap(f)(X, i), want)
