"""Workers that are killed, stopped or replaced: the step ends with an error, soon; and recovery."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusec

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

W0, W1 = "/job:worker/task:0", "/job:worker/task:1"
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="signals of POSIX")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "5 minutes"})
    with patient, distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, (
            distributed.Client(cluster)) as client:
        yield client


def process_of(client: Any, address: str) -> int:
    (pid,) = client.run(os.getpid, workers=[address]).values()
    return int(pid)


@fusec.jit
def over_two(x: Any) -> Any:
    with fusec.device(W0):
        a = np.sin(x) * 2
    with fusec.device(W1):
        return np.cos(a)


@fusec.jit
def endless(x: Any, n: Any) -> Any:
    with fusec.device(W1):
        k = 0
        while k < n:
            x = x * 0.5 + 1
            k += 1
    with fusec.device(W0):
        return x + 1


@pytest.mark.one_python
@pytest.mark.repeats  # a process takes seconds to begin, twice
def test_a_killed_worker_ends_the_step_and_comes_back(client: Any) -> None:
    x = np.linspace(0.0, 1.0, 5)
    with fusec.cluster(client) as workers:
        with fusec.device(W1):
            v = fusec.Variable(np.zeros(5), name="v")

        @fusec.jit
        def add(x: Any) -> None:
            with fusec.device(W1):
                v.assign_add(x)

        add(x)
        over_two(x)
        pid, before = process_of(client, workers.workers[1]), workers._links[1].incarnation
        killed: list[float] = []

        def kill() -> None:
            time.sleep(1.0)
            os.kill(pid, signal.SIGKILL)
            killed.append(time.monotonic())

        thread = threading.Thread(target=kill)
        thread.start()
        with pytest.raises(fusec.WorkerLostError, match=r"task:1 (.|\n)*cause") as lost:
            endless(x, 10**12)
        assert time.monotonic() - killed[0] <= 5
        assert f"{before:x}" in str(lost.value)
        thread.join()
        with pytest.raises(fusec.WorkerLostError):
            over_two(x)  # until it is there again
        with pytest.raises(fusec.WorkerLostError):
            v.numpy()  # never a value that is old
        workers.recover(120)
        assert workers._links[1].incarnation != before
        np.testing.assert_allclose(over_two(x), np.cos(np.sin(x) * 2))
        with pytest.raises(fusec.WorkerLostError):
            add(x)  # what it had is lost all the same


def test_a_worker_that_does_not_answer_is_lost(client: Any) -> None:
    x = np.linspace(0.0, 1.0, 5)
    with fusec.cluster(client, health_seconds=2.0) as workers:
        over_two(x)
        pid = process_of(client, workers.workers[0])
        os.kill(pid, signal.SIGSTOP)
        try:
            start = time.monotonic()
            with pytest.raises(fusec.WorkerLostError, match=r"task:0(.|\n)*not answered"):
                over_two(x)
            assert time.monotonic() - start <= 5
        finally:
            os.kill(pid, signal.SIGCONT)
        workers.recover(60)
        np.testing.assert_allclose(over_two(x), np.cos(np.sin(x) * 2))


def test_time_in_which_the_client_does_not_listen_is_not_the_workers(client: Any) -> None:
    x = np.linspace(0.0, 1.0, 5)
    with fusec.cluster(client, health_seconds=0.5) as workers:
        over_two(x)
        for _ in range(3):
            done = threading.Event()
            client.loop.add_callback(lambda done=done: (time.sleep(1.2), done.set()))
            assert done.wait(10)
            time.sleep(0.1)
            over_two(x)  # raised WorkerLostError
        assert not any(link.cause for link in workers._links.values())


def test_an_aborted_step_leaves_nothing_running(client: Any) -> None:
    x = np.linspace(0.0, 1.0, 5)
    with fusec.cluster(client) as workers:
        over_two(x)
        with pytest.raises(TimeoutError):
            endless.concrete(x, 10**12).run(
                x, 10**12, options=fusec.RunOptions(timeout=1.0))
        (address,) = [link.address for task, link in workers._links.items() if task == 1]
        deadline = time.monotonic() + 20
        while (busy := used(client, address)) > 0.5 and time.monotonic() < deadline:
            pass
        assert busy <= 0.5
        np.testing.assert_allclose(over_two(x), np.cos(np.sin(x) * 2))


def used(client: Any, address: str) -> float:
    """The part of a core that a worker uses."""
    times = []
    for _ in range(2):
        times.append(client.run(time.process_time, workers=[address])[address])
        time.sleep(0.5)
    return float(times[1] - times[0]) / 0.5
