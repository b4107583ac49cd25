"""Many workers, in one process: some closed while tasks run, and the time to plan many blocks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest

import fusec

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@fusec.jit
def standardised(x: Any) -> Any:
    return np.tanh((x - x.mean(axis=0)) / x.std(axis=0)), (x[1:] - x[:-1]).sum(axis=0), x.sum()


async def closed(workers: list[Any]) -> None:
    """Close workers as they are: tasks that run there and results are lost."""
    await asyncio.gather(*(w.close(timeout=1, executor_wait=False, nanny=False) for w in workers))


@pytest.mark.repeats  # twelve workers take seconds to begin
def test_eight_workers_closed_midway_leave_the_same_bits() -> None:
    x = np.random.default_rng(0).standard_normal((1_600, 6))
    lazy = standardised(da.from_array(x, chunks=(10, 6)))
    want = [np.asarray(array.compute(scheduler="sync")) for array in lazy]
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), distributed.LocalCluster(
            n_workers=12, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="inproc", memory_limit=0) as cluster, distributed.Client(cluster) as client:
        futures = client.compute(list(lazy))
        workers, last = list(cluster.workers.values()), time.monotonic() + 60
        while sum(w.state.executed_count for w in workers) < 100 and time.monotonic() < last:
            time.sleep(0.005)
        client.sync(closed, workers[:8])
        assert not all(future.done() for future in futures)
        for got, whole in zip(client.gather(futures), want, strict=True):
            np.testing.assert_array_equal(got, whole)
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 4


@pytest.mark.alone
def test_6400_blocks_of_two_stages_are_planned_in_a_second() -> None:
    x = da.zeros((64_000, 2), chunks=(10, 2))
    times = []
    for _ in range(4):
        begun = time.thread_time()
        standardised(x)
        times.append(time.thread_time() - begun)
        if times[-1] < 1.0:
            return
    raise AssertionError(f"{min(times):.2f} s of CPU time")
