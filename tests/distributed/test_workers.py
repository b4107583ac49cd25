"""Stages on workers of `distributed`: in this process, and in processes of their own."""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.compiled import graph_function
from fusec.distributed import block_tasks

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).standard_normal((200, 6))


@fusec.jit
def standardised(x: Any) -> Any:
    return np.tanh((x - x.mean(axis=0)) / x.std(axis=0)), x[1:] - x[:-1], x.sum()


def in_blocks() -> Any:
    return da.from_array(X, chunks=(30, 6))


def computed(client: Any) -> list[np.ndarray]:
    return list(client.gather(client.compute(list(standardised(in_blocks())))))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="inproc") as cluster, distributed.Client(cluster) as client:
        yield client


def test_in_threads(client: Any) -> None:
    got, want = computed(client), standardised(X)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-13)
    np.testing.assert_array_equal(got[1], want[1])
    np.testing.assert_allclose(got[2], want[2], rtol=1e-13)


def test_errors_of_a_worker_have_the_users_line(client: Any) -> None:
    lazy = fusec.jit(lambda x, t: t[x])(da.from_array(np.arange(9), chunks=4), np.ones(5))
    with pytest.raises(IndexError, match=r"out of bounds(.|\n)*test_workers\.py"):
        client.gather(client.compute(lazy))


@pytest.mark.repeats  # processes take seconds to begin
def test_processes_have_the_bits_of_threads() -> None:
    here = [np.asarray(a.compute(scheduler="sync")) for a in standardised(in_blocks())]
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, (
            distributed.Client(cluster)) as client:
        for got, want in zip(computed(client), here, strict=True):
            np.testing.assert_array_equal(got, want)
        threads = client.run(lambda: __import__("fusec").config.num_threads)
        assert set(threads.values()) == {1}  # a task has one core


def stage() -> block_tasks.StageCode:
    lazy = fusec.jit(lambda x: x * 2 + 1)(in_blocks())
    return next(task.value for task in dict(lazy.dask).values()
                if isinstance(getattr(task, "value", None), block_tasks.StageCode))


def test_a_worker_compiles_what_arrives_before_the_blocks_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = pickle.dumps(stage())
    monkeypatch.setattr(block_tasks, "is_workers_own", lambda: True)
    monkeypatch.setattr(block_tasks, "keep_to_slot", lambda: None)
    monkeypatch.setattr(block_tasks, "_kept", OrderedDict())
    code = pickle.loads(data)
    for thread in threading.enumerate():
        if thread.name == f"fusec-{code.name}":
            thread.join()
    monkeypatch.setattr(graph_function, "_executable", _compiles)
    np.testing.assert_array_equal(code.run(0, [X[:30]])[0], X[:30] * 2 + 1)


def _compiles(*_: Any) -> None:
    raise AssertionError("the first task compiles")


def test_stages_travel_as_texts_and_are_admitted() -> None:
    code = stage()
    data = pickle.dumps(code)
    assert b"CodeType" not in data and b"\x7fELF" not in data
    assert pickle.loads(data) is pickle.loads(data)  # compiled once in a process
    (text, *_) = code.texts
    hostile = block_tasks.StageCode(
        "stage", [text.replace("Fma", "Nothing")], code.outputs, code.kept)
    with pytest.raises(fusec.errors.FusecError, match="not admitted"):
        hostile.run(0, [X[:30]])


def test_workers_of_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(stage())
    monkeypatch.setattr(block_tasks, "versions", lambda: ("0.0.1", "2.0"))
    with pytest.raises(RuntimeError, match=r"another version(.|\n)*install the client's versions"):
        pickle.loads(data)
