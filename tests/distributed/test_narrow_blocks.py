"""Sums along an axis that is in one piece have the bits of the whole, however narrow blocks are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")
from tests.distributed.chunked import compared  # noqa: E402  Dask is an extra

RNG = np.random.default_rng(5)


def spread_of_columns(x: Any) -> Any:
    return x.T.var(axis=0, keepdims=True), x.T.std(axis=0)


def shifted_columns(x: Any) -> Any:
    return (x.T - 1).sum(axis=0), (x.T * np.arange(x.shape[1])[:, None]).sum(axis=0)


@pytest.mark.parametrize("function", [spread_of_columns, shifted_columns])
@pytest.mark.parametrize("columns", [2, 4, 7])
def test_short_sums_of_few_columns(function: Callable[..., Any], columns: int) -> None:
    x = RNG.standard_normal((34, columns))
    compared(function, x, chunks=[((24, 9, 1), columns)])
    few, many = fusec.jit(function)(x[:3]), fusec.jit(function)(x)
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a, b[..., :3])


def sums_of_rows(x: Any) -> Any:
    return x.sum(axis=0), np.tanh(x).mean(axis=0, keepdims=True), x.var(axis=0)


def centred(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def turned(x: Any) -> Any:
    return x.T.sum(axis=1), (x * np.arange(x.shape[1])).sum(axis=0)


def moving(x: Any) -> Any:
    means = x.mean(axis=0)
    return means[1:] - means[:-1], x.prod(axis=0)


@pytest.mark.parametrize("function", [sums_of_rows, centred, turned, moving])
@pytest.mark.parametrize("rows", [3, 9, 300])
def test_blocks_of_one_column(function: Callable[..., Any], rows: int) -> None:
    x = RNG.standard_normal((rows, 12)).round(2) + 1.5
    compared(function, x, chunks=[(rows, (1, 1, 4, 1, 3, 2))])


def test_axes_on_both_sides_of_the_one_in_blocks() -> None:
    x = RNG.standard_normal((20, 5, 30))
    compared(lambda x: (x.sum(axis=(0, 2)), x.sum(axis=0), x.sum(axis=2)), x,
             chunks=[(20, (1, 3, 1), 30)])


def test_a_sum_over_such_blocks_counts_each_column_once() -> None:
    x = RNG.standard_normal((40, 7))
    compared(lambda x: (x.sum(axis=0), x.sum(axis=0).sum(), (x - x.mean(axis=0)).max()), x,
             chunks=[(40, (1, 1, 4, 1))], exact=(True, False, True))


def test_what_a_narrow_block_reads_of_its_neighbour() -> None:
    x = da.from_array(RNG.standard_normal((40, 7)), chunks=(40, (1, 1, 4, 1)))
    said = str(fusec.explain(fusec.jit(lambda x: x.sum(axis=0)), x))
    assert "edges: 1 element of x along axis 1" in said
    rows = da.from_array(RNG.standard_normal((7, 40)), chunks=((1, 1, 4, 1), 40))
    assert "edges" not in str(fusec.explain(fusec.jit(lambda x: x.sum(axis=1)), rows))
    assert "edges" not in str(fusec.explain(fusec.jit(lambda x: x.max(axis=0)), x))
