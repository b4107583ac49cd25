"""Trainings and maps of which a worker is killed at a random moment.

    python -m tests.distributed.kills COUNT SEED [trainings|maps]

Each training has 200 steps on two worker processes, one of which gets signal 9.  Its final
Variables must be bit for bit those of a training that nobody disturbed; the loss must be told
within 5 seconds; at the end no process may be left.  A map is a program over blocks of Dask's on
the same workers, of which the result must be right.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import fusec

STEPS, MOST_SECONDS = 200, 5.0


class Model:
    """Weights, and a generator that every step draws from."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.w = fusec.Variable(rng.normal(size=(20, 30)), name="w")
        self.v = fusec.Variable(rng.normal(size=30), name="v")
        self.random = np.random.default_rng(2)
        self.replicated = fusec.replicate(self.update)

    @fusec.jit
    def update(self, x: Any, y: Any) -> Any:
        def loss() -> Any:
            return np.mean((np.tanh(x @ self.w) @ self.v - y) ** 2)

        value, (w, v) = fusec.value_and_grad(loss, wrt=[self.w, self.v])()
        self.w.assign_sub(0.05 * w)
        self.v.assign_sub(0.05 * v)
        return value


class Watched:
    """A step, slow enough to be hit; when it loses a worker is noted."""

    def __init__(self, model: Model) -> None:
        self.model, self.steps, self.lost_at = model, 0, list[float]()

    def __call__(self, x: Any) -> Any:
        self.steps += 1
        time.sleep(0.005)
        y = x.sum(axis=1) + self.model.random.normal(0, 0.1, len(x))
        try:
            return self.model.replicated(x, y)
        except fusec.WorkerLostError:
            self.lost_at.append(time.monotonic())
            raise


def batches() -> list[np.ndarray]:
    return [*np.random.default_rng(3).normal(size=(STEPS, 64, 20))]


def trained(watched: Watched) -> tuple[np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        report = fusec.train(watched, watched.model, batches(), checkpoint=f"{folder}/run",
                             checkpoint_steps=25, progress=False)
    assert report.step == STEPS
    return watched.model.w.numpy(), watched.model.v.numpy()


def killed_training(
    client: Any, workers: Any, rng: random.Random, want: tuple[np.ndarray, np.ndarray]
) -> float:
    """Seconds from the kill to the error; raises where anything else is wrong."""
    watched, at = Watched(Model()), list[float]()
    last, pids = rng.randrange(STEPS), sorted(client.run(os.getpid).values())
    victim = rng.choice(pids)

    def kill() -> None:
        while watched.steps < last:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        at.append(time.monotonic())
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    got = trained(watched)
    thread.join()
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    if not watched.lost_at:  # it came after the last step
        workers.recover(120)
        return 0.0
    seconds = watched.lost_at[0] - at[0]
    assert seconds <= MOST_SECONDS, f"told after {seconds:.1f} s"
    return seconds


@fusec.jit
def scores(x: Any) -> Any:
    return np.tanh((x - x.mean(axis=0)) / (1 + np.abs(x).max(axis=0))).sum(axis=1)


def killed_map(client: Any, rng: random.Random) -> None:
    """A map, and the kill while it runs."""
    data = np.random.default_rng(rng.randrange(99)).normal(size=(40_000, 25))
    pids = sorted(client.run(os.getpid).values())
    future = client.compute(scores(da.from_array(data, chunks=(1000, 25))), retries=10)
    time.sleep(rng.uniform(0, 0.3))
    os.kill(rng.choice(pids), signal.SIGKILL)
    np.testing.assert_array_equal(future.result(timeout=120), scores_of_blocks(data))
    client.wait_for_workers(2, timeout=300)


def scores_of_blocks(data: np.ndarray) -> np.ndarray:
    """The same here, of the same blocks: their sums have their order."""
    return np.asarray(scores(da.from_array(data, chunks=(1000, 25))).compute(scheduler="sync"))


def campaign(count: int, seed: int, kind: str) -> None:
    rng, slowest = random.Random(seed), 0.0
    # Dask counts from each loss, and gives a worker up that is lost again when the time is over.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day",
                               "distributed.scheduler.allowed-failures": 100})
    with patient, LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0") as local, (
            Client(local)) as client:
        if kind == "maps":
            for _ in range(count):
                killed_map(client, rng)
        else:
            with fusec.cluster(client) as workers:
                want = trained(Watched(Model()))
                for number in range(count):
                    slowest = max(slowest, killed_training(client, workers, rng, want))
                    print(f"{number + 1}: told after {slowest:.2f} s at most", flush=True)
    left = children()
    assert not left, f"left running: {left}"
    told = f", told after {slowest:.2f} s at most" if kind != "maps" else ""
    print(f"{count} {kind} with a worker killed, each as if nobody had{told}; nothing left running")


def children() -> list[str]:
    """The processes that this one has started and that still run."""
    end = time.monotonic() + 10
    while True:
        text = subprocess.run(["ps", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())],
                              capture_output=True, text=True, check=False).stdout
        left = [line for line in text.splitlines() if "ps -o" not in line and " Z" not in line
                and "resource_tracker" not in line]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


if __name__ == "__main__":
    campaign(int(sys.argv[1]), int(sys.argv[2]), (sys.argv[3:] or ["trainings"])[0])
