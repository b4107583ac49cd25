"""How long a step over two worker processes takes beside its work: `python two_worker_step.py`.

Prints least times, 5 % and medians of 200 steps, and of the same by two of Dask's actors by hand,
interleaved in one run; and the processor time of a step in each process.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import fusec

ROUNDS, STEPS = 10, 20


class First:
    def go(self, x: Any) -> Any:
        return np.sin(x) * 2


class Second:
    def go(self, x: Any) -> Any:
        return np.cos(x)


@fusec.jit
def step(x: Any) -> Any:
    with fusec.device("/job:worker/task:0"):
        a = np.sin(x) * 2
    with fusec.device("/job:worker/task:1"):
        return np.cos(a)


def used(client: Any) -> np.ndarray:
    return np.array([time.process_time(), *client.run(time.process_time).values()])


def main() -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local, (
            Client(local)) as client, fusec.cluster(client) as workers:
        first = client.submit(First, actor=True, workers=[workers.workers[0]]).result()
        second = client.submit(Second, actor=True, workers=[workers.workers[1]]).result()
        ways = {"step": step, "actors": lambda x: second.go(first.go(x).result()).result()}
        x = np.linspace(0.0, 1.0, 10)
        times: dict[str, list[float]] = {name: [] for name in ways}
        cpu = {name: np.zeros(3) for name in ways}
        for way in ways.values():
            np.testing.assert_allclose(way(x), np.cos(np.sin(x) * 2))
        for _ in range(ROUNDS):
            for name, way in ways.items():
                before = used(client)
                for _ in range(STEPS):
                    start = time.perf_counter()
                    way(x)
                    times[name].append(time.perf_counter() - start)
                cpu[name] += used(client) - before
        for name in ways:
            least, low, median = 1e3 * np.quantile(times[name], [0, 0.05, 0.5])
            print(f"{name}: least {least:.2f} ms, 5 % within {low:.2f}, median {median:.2f}; "
                  f"processor ms a step {np.round(1e3 * cpu[name] / ROUNDS / STEPS, 2)}")


if __name__ == "__main__":
    main()
