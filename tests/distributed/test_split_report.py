"""`fusec.explain` of calls with Dask's arrays, and workers that have too little memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.distributed import split_report

da = pytest.importorskip("dask.array")


def steps(x: Any) -> Any:
    return x[1:] - x[:-1], x.sum()


def test_the_stages_are_shown() -> None:
    x = da.zeros((1000, 8), chunks=(250, 8))
    report: Any = fusec.explain(fusec.jit(steps), x)
    (stage,) = report.stages
    assert (stage.blocks, stage.kinds, report.tasks) == (4, 2, 4)
    # 250 rows and an edge are read, 250 rows of differences and a sum are given.
    assert report.peak_bytes == stage.task_bytes == (251 + 250) * 8 * 8 + 8
    assert report.moved_bytes == 3 * 8 * 8  # an edge of three blocks
    text = str(report)
    assert "barrier: Sum: f64" in text and "joined by add" in text
    assert "edges: 1 element of x along axis 0" in text
    assert "peak of a task: 32.1 kB" in text and "<pre>" in report.html()


def test_nothing_is_computed_to_explain() -> None:
    x = da.from_array(np.ones(10), chunks=5).map_blocks(lambda block: 1 / 0, dtype=float)
    assert "2 tasks" in str(fusec.explain(fusec.jit(lambda x: x + 1), x))


class Client:
    """A client whose workers have this memory and these threads."""

    asynchronous = False

    def __init__(self, limit: int, threads: int) -> None:
        self.limit, self.threads = limit, threads

    def scheduler_info(self, n_workers: int) -> Any:
        return {"workers": {"tcp://a:1": {"memory_limit": self.limit, "nthreads": self.threads}}}


@pytest.mark.parametrize(("limit", "threads", "fits"), [
    (10_000, 1, False), (20_000, 1, True), (20_000, 2, False), (0, 2, True)])
def test_more_than_a_workers_memory_is_an_error_before_the_run(
    limit: int, threads: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_report, "_client", lambda: Client(limit, threads))
    f, x = fusec.jit(lambda x: x * 2 + 1), da.zeros(10_000, chunks=1_000)  # 8 kB in, 8 kB out
    if fits:
        assert f(x).shape == (10_000,)
        return
    with pytest.raises(MemoryError, match=r"needed: +\d(.|\n)*limit: (.|\n)*x\.rechunk"):
        f(x)


def test_a_table_that_each_row_looks_up_is_not_made_for_all_rows_at_once() -> None:
    """Only the table goes to the blocks: each makes its rows of it."""
    months = np.arange(600) // 50

    def with_sums(x: Any, month: Any) -> Any:
        total = np.zeros((12, x.shape[1]))
        np.add.at(total, month, x)
        return x - (total / 50)[month] * 2

    def with_inverse(x: Any, month: Any) -> Any:
        return x - 2 * np.linalg.inv(x[:12].T @ x[:12])[month % 7]

    x = np.random.default_rng(0).standard_normal((600, 7))
    cut = da.from_array(x, chunks=(100, 7))
    for function in map(fusec.jit, (with_sums, with_inverse)):
        assert fusec.explain(function, cut, months).peak_bytes < x.nbytes / 2
        np.testing.assert_allclose(
            function(cut, months).compute(scheduler="sync"), function(x, months), rtol=1e-12)
