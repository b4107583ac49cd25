"""Scans along axes in blocks: own scans of blocks, and what those before come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")

from tests.distributed.chunked import compared  # noqa: E402

RNG = np.random.default_rng(0)
X, V, N = RNG.standard_normal((60, 20)), RNG.standard_normal(90), RNG.integers(-5, 5, 90)
CASES: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "sums": (np.cumsum, V, 10),
    "a first block that is short": (np.cumsum, V, ((7, 20, 20, 20, 23),)),
    "first and last blocks that are long": (np.cumsum, V, ((37, 20, 33),)),
    "blocks of several lengths": (np.cumsum, V, ((10, 20, 30, 10, 20),)),
    "two blocks": (np.cumsum, V, ((37, 53),)),
    "along each of two axes in blocks": (
        lambda x: (np.cumsum(x, axis=0), np.cumsum(x, axis=1)), X, (10, 7)),
    "shifted operands": (lambda v: np.cumsum(v[1:])[3:] - np.cumsum(v)[:-4], V, 10),
    "blocks that have none of it": (lambda v: np.cumsum(v[25:]), V, 10),
    "differences of sums": (lambda v: np.cumsum(v)[5:] - np.cumsum(v)[:-5], V, 10),
    "what needs all of it": (lambda v: np.cumsum(v) / np.cumsum(v).max(), V, 10),
    "its variance": (lambda v: np.cumsum(v).std(), V, 10),
    "of what needs all blocks": (lambda v: np.cumsum(v - v.mean()), V, 10),
    "a scan of a scan": (lambda v: np.cumsum(np.cumsum(v)), V, 10),
    "products": (np.cumprod, V, 10),
}
EXACT: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "integers": (np.cumsum, N, 10),
    "extrema": (lambda v: (np.maximum.accumulate(v), np.minimum.accumulate(v)), V, 10),
    "a NaN": (lambda v: np.minimum.accumulate(np.where(v > 1.5, np.nan, v)), V, 10),
    "conditions": (lambda v: np.logical_or.accumulate(v > 1.5), V, 10),
}


@pytest.mark.parametrize("name", [*CASES, *EXACT])
def test_a_scan_over_blocks_is_that_of_the_whole(name: str) -> None:
    f, x, chunks = (CASES | EXACT)[name]
    compared(lambda x: f(x), x, chunks=[chunks], exact=name in EXACT)


def test_each_block_looks_its_offset_up_and_no_task_has_the_whole_axis() -> None:
    v = da.from_array(np.tile(V, 100), chunks=900)
    report: Any = fusec.explain(fusec.jit(lambda v: np.cumsum(v)), v)
    assert [stage.blocks for stage in report.stages] == [10, 10]
    assert report.peak_bytes < 4 * 900 * 8


def test_the_first_block_has_the_bits_of_the_whole() -> None:
    for x in (np.array([-0.0, -0.0, 1.0, 2.0]), V):
        ours = fusec.jit(lambda x: np.cumsum(x))(da.from_array(x, chunks=2)).compute()
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(np.cumsum(x)))
        np.testing.assert_array_equal(ours[:2], np.cumsum(x)[:2])


def test_many_blocks_of_several_lengths_are_refused() -> None:
    lengths = (1, 2) * 20
    v = da.from_array(V[:60], chunks=(lengths,))
    with pytest.raises(fusec.errors.UnsupportedError,
                       match=r"cumsum along axis 0, which is in 40 blocks(.|\n)*\{0: 2\}\)"):
        fusec.jit(lambda v: np.cumsum(v))(v)
