"""Programs over arrays larger than a worker: fusec on Dask's blocks against Dask by itself.

Usage: ``python -m tests.distributed.large_programs [GB] [REPEATS] [--blocks N] [--memory LIMIT]
[--made] [--ours] [--program NAME]``

Two processes with a thread each.  The inputs are kept in the workers' memory; with ``--made`` tasks
make them, and nothing is kept beforehand, so that arrays may be larger than the memory.  ``--ours``
leaves Dask's own out.  Both have the same arrays in the same blocks, in turn, and reduce their
result to one number there.  The peak is of what a worker has beyond its inputs, in blocks.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask._task_spec import Task
from distributed import Client, LocalCluster, wait
from scipy.special import erf

import fusec
from fusec.core.display.amounts import bytes_text
from fusec.core.display.tables import Column, Tabular
from fusec.core.records import dataclass
from fusec.distributed.joins import MANY

COLUMNS, MOST_BLOCKS = 250, 4.0
SAME = 1e-9  # of the result: sums of 5e8 numbers, in another order


def standardised(x: Any) -> Any:
    """Columns of mean 0 and deviation 1, cut smoothly, summed: two stages."""
    return np.tanh((x - x.mean(axis=0)) / x.std(axis=0)).sum()


def prices(spot: Any, strike: Any, years: Any) -> Any:
    """Calls by Black and Scholes, summed: one stage."""
    deviation = 0.2 * np.sqrt(years)
    d = (np.log(spot / strike) + 0.05 * years) / deviation
    return (spot * normal(d) - strike * np.exp(-0.03 * years) * normal(d - deviation)).sum()


def normal(x: Any) -> Any:
    return 0.5 * (1 + erf(x / np.sqrt(2)))


def inputs(name: str, gigabytes: float, blocks: int) -> list[Any]:
    """Lazy arrays of so many gigabytes together."""
    random, count = da.random.default_rng(0), int(gigabytes * 1e9 / 8)
    if name == "standardised":
        rows = max(count // COLUMNS // blocks, 1)
        return [random.random((blocks * rows, COLUMNS), chunks=(rows, COLUMNS))]
    size = max(count // 3 // blocks, 1)
    return [random.random(blocks * size, chunks=size) + 0.5 for _ in range(3)]


PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "standardised": (standardised, 2), "prices": (prices, 1)}  # and their stages


def tasks_of(lazy: Any) -> int:
    """How many tasks there are, but for arrays that are in memory."""
    graph = dict(dask.optimize(lazy)[0].dask)
    return sum(isinstance(task, Task) for task in graph.values())


def most_tasks(stages: int, blocks: int) -> int:
    """One a block and stage, and for each stage a tree and its results, of which there are two in
    a stage that has one after it."""
    tree, row = 0, blocks
    while row > MANY:
        row = math.ceil(row / MANY)
        tree += row
    return stages * (blocks + tree) + 2 * stages - 1


# ------------------------------------------------------------------------------- memory of workers


def watch(dask_worker: Any) -> None:
    """Note the greatest memory of this worker from now on."""
    import psutil

    process, seen, ended = psutil.Process(), [0], threading.Event()
    first = process.memory_info().rss

    def look() -> None:
        while not ended.wait(0.005):
            seen[0] = max(seen[0], process.memory_info().rss)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    dask_worker.fusec_peak = lambda: (ended.set(), thread.join(), (first, seen[0]))[-1]


def peak(dask_worker: Any) -> tuple[int, int]:
    """What it had at first, and at most."""
    seen: tuple[int, int] = dask_worker.fusec_peak()
    return seen


# ------------------------------------------------------------------------------------- measurement


@dataclass(frozen=True)
class Measured:
    """One program, one way.  ``beyond``: bytes in blocks; ``worker``: all bytes of a worker."""

    program: str
    way: str
    times: tuple[float, ...]
    tasks: int
    beyond: float
    worker: int

    @property
    def seconds(self) -> float:
        return statistics.median(self.times)


class MeasuredPrograms(Tabular):
    """All of them."""

    def __init__(self, rows: Sequence[Measured]) -> None:
        self.rows = rows

    def shown_rows(self) -> Sequence[Measured]:
        return self.rows

    def columns(self) -> Sequence[Column]:
        return [Column("program", lambda row: row.program, left=True),
                Column("by", lambda row: row.way, left=True),
                Column("median", lambda row: f"{row.seconds:.2f} s"),
                Column("faster", self.faster),
                Column("tasks", lambda row: str(row.tasks)),
                Column("beyond inputs", lambda row: f"{row.beyond:.1f} blocks"),
                Column("worker", lambda row: bytes_text(row.worker))]

    def faster(self, row: Measured) -> str:
        """Than the slowest of the program."""
        slowest = max(other.seconds for other in self.rows if other.program == row.program)
        return f"{slowest / row.seconds:.1f} x"


def functions_of(
    name: str, arrays: Sequence[Any], with_dask: bool = True
) -> dict[str, Callable[[], Any]]:
    """The program over these arrays, by fusec and by Dask: lazy results."""
    function, _ = PROGRAMS[name]
    jitted = fusec.jit(function)
    both: dict[str, Callable[[], Any]] = {"fusec": lambda: jitted(*arrays)}
    return both | ({"dask": lambda: function(*arrays)} if with_dask else {})


def computed(function: Callable[[], Any], times: list[float]) -> float:
    """The result; notes the seconds."""
    begun = time.perf_counter()
    result = float(function().compute())
    times.append(time.perf_counter() - begun)
    return result


def memory_of(function: Callable[[], Any], client: Any) -> tuple[int, int]:
    """Bytes that a worker has at most: beyond what it had before, and all of them."""
    client.run(watch)
    function().compute()
    seen = client.run(peak).values()
    return max(most - first for first, most in seen), max(most for _, most in seen)


def measured(given: argparse.Namespace, client: Any, name: str) -> list[Measured]:
    """One program, all ways; raises where results, tasks or the peak are not what they should."""
    arrays = inputs(name, given.gigabytes, given.blocks)
    if not given.made:
        arrays = client.persist(arrays)
        wait(arrays)
    functions = functions_of(name, arrays, not given.ours)
    times: dict[str, list[float]] = {way: [] for way in functions}
    for _ in range(given.repeats + 1):  # the first one compiles
        results = [computed(function, times[way]) for way, function in functions.items()]
        assert np.allclose(results, results[0], rtol=SAME, atol=0), results
    size = sum(array.nbytes / array.npartitions for array in arrays)
    rows = [Measured(name, way, tuple(times[way][1:] or times[way]), tasks_of(function()),
                     beyond / size, worker)
            for way, function in functions.items()
            for beyond, worker in [memory_of(function, client)]]
    if not given.made:
        assert rows[0].tasks <= most_tasks(PROGRAMS[name][1], given.blocks), rows[0]
        assert rows[0].beyond <= MOST_BLOCKS, rows[0]
    return rows


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gigabytes", type=float, nargs="?", default=4.0)
    parser.add_argument("repeats", type=int, nargs="?", default=5)
    parser.add_argument("--blocks", type=int, default=128)
    parser.add_argument("--memory", default="8GB", help="of a worker")
    parser.add_argument("--made", action="store_true", help="tasks make the inputs")
    parser.add_argument("--ours", action="store_true", help="without Dask's own")
    parser.add_argument("--program", choices=PROGRAMS, help="this one alone")
    return parser.parse_args()


def main() -> int:
    given = options()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0",
                      memory_limit=given.memory) as cluster, Client(cluster) as client:
        rows = [row for name in ([given.program] if given.program else PROGRAMS)
                for row in measured(given, client, name)]
    print(MeasuredPrograms(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
