"""Variables of workers, pickled: handles that ask the worker, and say where it is another one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusec

distributed = pytest.importorskip("distributed")

W0, W1 = "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="tcp") as cluster, distributed.Client(cluster) as client:
        yield client


def variable_on(device: str, value: Any, name: str = "weights") -> fusec.Variable:
    with fusec.device(device):
        return fusec.Variable(value, name=name)


@fusec.jit
def add(v: fusec.Variable, x: Any) -> None:
    with fusec.device(W1):
        v.assign_add(x)


def handle(v: fusec.Variable) -> Any:
    return pickle.loads(pickle.dumps(v))


def test_a_handle_has_names_and_no_value(workers: Any) -> None:
    v = variable_on(W1, np.arange(1e5))
    text = pickle.dumps(v)
    assert len(text) < 1000
    made = pickle.loads(text)
    assert (made.name, made.worker) == ("weights", workers.workers[1])
    assert made.device.startswith(W1)
    assert (made.shape, made.dtype) == (v.shape, v.dtype)


def test_a_handle_reads_what_the_worker_has(workers: Any) -> None:
    v = variable_on(W1, np.arange(3.0))
    made = handle(v)
    np.testing.assert_array_equal(made.numpy(), [0, 1, 2])
    add(v, np.ones(3))
    np.testing.assert_array_equal(made, [1, 2, 3])
    v[:] = 7.0  # here: the worker has it with the next step, or the next pickle
    np.testing.assert_array_equal(handle(v).numpy(), [7, 7, 7])
    add(v, np.ones(3))
    np.testing.assert_array_equal(made.numpy(), [8, 8, 8])
    np.testing.assert_array_equal(v.numpy(), [8, 8, 8])


def test_tasks_on_workers_read_it(workers: Any, client: Any) -> None:
    v = variable_on(W1, np.full((200, 100), 2.0))
    for address in workers.workers:
        total = client.submit(lambda v: float(np.sum(v.numpy())), v, workers=[address], pure=False)
        assert total.result(timeout=60) == 40_000


def test_another_process_in_its_place_says_so(workers: Any) -> None:
    made = handle(variable_on(W1, np.zeros(3)))
    with pytest.raises(fusec.WorkerLostError, match=r"Variable weights of /job:worker/task:1") as e:
        replace(made, incarnation=made.incarnation ^ 1).numpy()
    text = str(e.value)
    assert f"{made.incarnation:x}" in text and f"{made.incarnation ^ 1:x}" in text, text


def test_dropped_variables_lost_workers_and_other_clusters_are_errors(workers: Any) -> None:
    made = handle(variable_on(W1, np.zeros(3)))  # which nobody has any more
    handle(variable_on(W1, 0.0))  # the last hold of this thread is another one's
    with pytest.raises(fusec.WorkerLostError, match="dropped it"):
        for _ in range(100):
            made.numpy()
    with pytest.raises(fusec.WorkerLostError, match="closed its cluster"):
        replace(made, session="other").numpy()
    with pytest.raises(fusec.WorkerLostError, match="cannot be read"):
        replace(made, worker="tcp://127.0.0.1:1").numpy()
