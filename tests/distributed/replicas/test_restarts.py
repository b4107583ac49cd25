"""Trainings that lose a worker: from the last checkpoint to the same end, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

distributed = pytest.importorskip("distributed")
pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="inproc") as local, distributed.Client(local) as client, (
            fusec.cluster(client)) as workers:
        yield workers


class Noisy:
    """Weights that fit lines; every step draws from a generator of NumPy's."""

    def __init__(self) -> None:
        self.w = fusec.Variable(np.zeros(3), name="w")
        self.random = np.random.default_rng(5)
        self.replicated = fusec.replicate(self.update)
        self.losses: set[int] = set()  # steps that are yet to lose a worker
        self.workers: Any = None

    @fusec.jit
    def update(self, x: Any, y: Any) -> Any:
        def loss() -> Any:
            return np.mean((x @ self.w - y) ** 2)

        value, slope = fusec.value_and_grad(loss, wrt=self.w)()
        self.w.assign_sub(0.1 * slope)
        return value

    def step(self, number: int, x: Any) -> Any:
        noise = self.random.normal(0, 0.01, len(x))
        result = self.replicated(x, x @ np.arange(3.0) + noise)
        if number in self.losses:
            self.losses.discard(number)
            self.workers._links[1].break_off("the test ends it")
            self.replicated(x, noise)
        return result


def batches(count: int = 12) -> list[Any]:
    rng = np.random.default_rng(0)
    return [(k, rng.normal(size=(16, 3))) for k in range(count)]


def trained(path: Path, workers: Any, losses: set[int], inputs: Any = None, **options: Any) -> Any:
    model = Noisy()
    model.losses, model.workers = losses, workers
    report = fusec.train(model.step, model, batches() if inputs is None else inputs,
                         checkpoint=path, **{"checkpoint_steps": 4, **options})
    return model.w.numpy(), report


def test_the_end_is_that_of_a_training_that_nobody_disturbed(workers: Any, tmp_path: Path) -> None:
    want, _ = trained(tmp_path / "a", workers, set())
    for name, losses, options in (("b", {6}, {}), ("c", {0, 11}, {}), ("d", {2, 3, 9}, {
            "checkpoint_steps": None}), ("e", {5}, {"prefetch": 0})):
        got, report = trained(tmp_path / name, workers, losses, **options)
        assert not losses
        assert report.step == 12
        np.testing.assert_array_equal(got, want)


def test_passes_over_the_inputs_go_on_where_they_were(workers: Any, tmp_path: Path) -> None:
    want, _ = trained(tmp_path / "a", workers, set(), batches(5), epochs=3)
    got, report = trained(tmp_path / "b", workers, {2}, batches(5), epochs=3)
    assert report.step == 15
    np.testing.assert_array_equal(got, want)


def test_a_loss_in_the_last_save_takes_the_last_steps_again(workers: Any, tmp_path: Path) -> None:
    want, _ = trained(tmp_path / "a", workers, set(), checkpoint_steps=5)
    losses = [12]

    def hook(run: Any) -> None:
        if run.step in losses:
            losses.remove(run.step)
            for link in workers._links.values():
                link.break_off("the test ends it")

    for name, options in (("b", {}), ("c", {"steps": 12})):
        losses[:] = [12]
        got, report = trained(
            tmp_path / name, workers, set(), checkpoint_steps=5, hooks=[hook], **options)
        assert not losses
        assert report.step == 12
        np.testing.assert_array_equal(got, want)


class Resumable:
    """An iterator that can be brought back, as Grain's."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Resumable:
        return self

    def __next__(self) -> Any:
        if self.at == 12:
            raise StopIteration
        self.at += 1
        return batches()[self.at - 1]

    def get_state(self) -> int:
        return self.at

    def set_state(self, at: int) -> None:
        self.at = at


def test_iterators_are_brought_back(workers: Any, tmp_path: Path) -> None:
    want, _ = trained(tmp_path / "a", workers, set())
    for name, losses in (("b", {1}), ("c", {7})):  # before the first save of a step, and after
        got, report = trained(tmp_path / name, workers, losses, Resumable())
        assert report.step == 12
        np.testing.assert_array_equal(got, want)
    with pytest.raises(fusec.WorkerLostError, match="task:1") as lost:
        trained(tmp_path / "d", workers, {3}, iter(batches()))
    assert any("can be passed once" in note for note in lost.value.__notes__)
    workers.recover(30)


def test_a_step_that_loses_workers_again_and_again_is_an_error(
    workers: Any, tmp_path: Path
) -> None:
    model, seen = Noisy(), list[int]()

    def step(number: int, x: Any) -> Any:
        seen.append(number)
        if number == 6:
            workers._links[0].break_off("the step ends it")
        return model.replicated(x, x @ np.arange(3.0))

    with pytest.raises(RuntimeError, match=r"step 7 has lost a worker 3 times(.|\n)*logs"):
        fusec.train(step, model, batches(), checkpoint=tmp_path / "run", checkpoint_steps=5)
    assert seen == [0, 1, 2, 3, 4, 5, 6, 5, 6, 5, 6]
    workers.recover(30)


def test_without_a_checkpoint_the_loss_is_raised(workers: Any) -> None:
    model = Noisy()
    model.losses, model.workers = {1}, workers
    with pytest.raises(fusec.WorkerLostError):
        fusec.train(model.step, model, batches())
    workers.recover(30)


def test_a_stale_incarnation_is_rejected(workers: Any) -> None:
    """A connection that means an earlier process of the same address gets no answer but that; and
    a value that such a process has sent meets no receive."""
    from fusec.runtime.partitions.rendezvous import Key, Rendezvous

    client = workers._client
    link = workers._links[1]

    async def connect(incarnation: int) -> str:
        comm = await distributed.comm.connect(link.address, **client.connection_args)
        try:
            await comm.write({"op": "fusec-peer", "reply": False, "incarnation": incarnation})
            return str((await comm.read())["status"])
        finally:
            comm.abort()

    assert client.sync(connect, link.incarnation + 1) == "stale"
    assert client.sync(connect, link.incarnation) == "ok"
    meeting, came = Rendezvous(), list[Any]()
    meeting.begin(1)
    key = Key("a", link.incarnation, "b", "v", 1)
    meeting.receive(key, came.append)
    meeting.send(key._replace(incarnation=link.incarnation + 1), "old")
    meeting.send(key, "new")
    assert came == ["new"]
