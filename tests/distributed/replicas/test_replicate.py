"""`fusec.replicate`: the step's own results, the same bits for any number of workers, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fusec

distributed = pytest.importorskip("distributed")
peers = pytest.importorskip("fusec.distributed.cluster.peers")
programs = pytest.importorskip("fusec.distributed.cluster.worker_programs")

RNG = np.random.default_rng(0)
X, Y = RNG.random((48, 6)), RNG.integers(0, 4, 48)


@contextmanager
def cluster_of(count: int) -> Iterator[Any]:
    with distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="inproc") as local, distributed.Client(local) as client, (
            fusec.cluster(client)) as workers:
        yield workers


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    with cluster_of(4) as workers:
        yield workers


class Model:
    """A classifier of four classes; ``dtype`` of its weights."""

    def __init__(self, dtype: Any = float) -> None:
        rng = np.random.default_rng(1)
        start = {"W": rng.normal(0, 0.3, (6, 8)), "b": np.zeros(8), "V": rng.normal(0, 0.3, (8, 4))}
        self.weights = {k: fusec.Variable(v.astype(dtype), name=k) for k, v in start.items()}
        self.steps = fusec.Variable(0, name="steps")

    def scores(self, x: Any) -> Any:
        w = self.weights
        return np.tanh(x @ w["W"] + w["b"]) @ w["V"]

    def loss(self, x: Any, y: Any) -> Any:
        scores = self.scores(x)
        chosen = np.where(y[:, None] == np.arange(4), scores, 0).sum(axis=1)
        top = scores.max(axis=1)
        return np.mean(np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - chosen)

    @fusec.jit
    def step(self, x: Any, y: Any) -> Any:
        loss, slopes = fusec.value_and_grad(self.loss, wrt=self.weights)(x, y)
        for name, slope in slopes.items():
            self.weights[name].assign_sub(0.5 * slope)
        self.steps.assign_add(1)
        return {"loss": loss, "steps": self.steps.numpy()}

    def values(self) -> dict[str, np.ndarray]:
        return {name: v.numpy() for name, v in self.weights.items()}


def trained(make: Any, steps: int = 3) -> tuple[dict[str, np.ndarray], Any]:
    model = Model()
    step = make(model.step)
    for _ in range(steps):
        metrics = step(X, Y)
    return model.values(), metrics


def test_it_is_the_step_itself_with_the_same_bits_for_any_number_of_workers() -> None:
    alone, metrics = trained(lambda step: step)
    found = []
    for count in (1, 2, 3):
        with cluster_of(count):
            values, got = trained(fusec.replicate)
        assert got["steps"] == 3
        np.testing.assert_allclose(got["loss"], metrics["loss"], rtol=1e-12)
        found.append(values)
        for name, value in values.items():
            np.testing.assert_allclose(value, alone[name], rtol=1e-12, atol=1e-14)
            np.testing.assert_array_equal(value, found[0][name])


@pytest.mark.repeats  # it takes seconds to have so many workers
def test_16_workers_in_one_process() -> None:
    x, y = RNG.random((128, 6)), RNG.integers(0, 4, 128)
    found = []
    for count in (16, 2):
        with cluster_of(count):
            model = Model()
            step = fusec.replicate(model.step, pieces=64)
            for _ in range(2):
                step(x, y)
            found.append(model.values())
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name])


class Counted:
    """The bytes of ring messages that each worker sends, by the connection's owner."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: dict[str, int] = {}
        self.largest = 0
        post = peers.PeerLink.post

        def counting(link: Any, message: Any, values: Any) -> None:
            if message["key"].startswith("ring"):
                nbytes = sum(np.asarray(v).nbytes for v in values)
                source = message["source"]
                self.sent[source] = self.sent.get(source, 0) + nbytes
                self.largest = max(self.largest, nbytes)
            post(link, message, values)

        monkeypatch.setattr(peers.PeerLink, "post", counting)


@fusec.jit
def sums(x: Any) -> Any:
    return np.tanh(x).sum(axis=0)


def test_a_worker_sends_the_least_there_is(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    x = RNG.random((8, 800_000))
    got = fusec.replicate(sums)(x)
    np.testing.assert_allclose(got, np.tanh(x).sum(axis=0))
    assert [*counted.sent.values()] == [2 * 3 * x.shape[1] * 8 // 4] * 4  # 2 (n - 1) / n
    assert counted.largest <= 1 << 20


def test_float32_travels_in_16_bits_where_that_is_asked_for(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    x = RNG.random((8, 800)).astype(np.float32)
    exact = fusec.replicate(sums)(x)
    before = sum(counted.sent.values())
    lossy = fusec.replicate(sums, transfer="bfloat16")(x)
    assert 2 * (sum(counted.sent.values()) - before) == before
    assert 0 < np.abs(lossy - exact).max() < 0.1


def test_replicas_stay_where_they_are_until_somebody_reads_one(workers: Any) -> None:
    model = Model()
    step = fusec.replicate(model.step)
    for _ in range(2):
        step(X, Y)
    assert all(v.occupancy.away is not None for v in model.weights.values())
    fetched = model.values()
    assert all(v.occupancy.away is None for v in model.weights.values())
    model.weights["b"].assign(np.ones(8))  # here: every worker gets it with the next step
    step(X, Y)
    other = Model()
    for name, value in fetched.items():
        other.weights[name].assign(value)
    other.weights["b"].assign(np.ones(8))
    other.step(X, Y)
    for name, value in other.values().items():
        np.testing.assert_allclose(model.weights[name], value, rtol=1e-12, atol=1e-14)


def test_plain_functions_and_scopes_share_its_variables(workers: Any) -> None:
    model = Model()
    step = fusec.replicate(model.step)
    step(X, Y)
    model.step(X, Y)  # here alone
    step(X, Y)
    alone, _ = trained(lambda step: step)
    for name, value in alone.items():
        np.testing.assert_allclose(model.weights[name], value, rtol=1e-12, atol=1e-14)

    @fusec.jit
    def elsewhere() -> Any:
        with fusec.device("/job:worker/task:2"):
            return model.weights["b"].numpy() * 2

    np.testing.assert_array_equal(elsewhere(), 2 * model.weights["b"].numpy())


def test_results_of_rows_come_back_in_their_order(workers: Any) -> None:
    model = Model()

    @fusec.replicate
    def predict(x: Any, scale: Any) -> Any:
        return model.scores(x) * scale, x.mean(axis=0), x, 7

    got, mean, same, seven = predict(X, 2.0)
    np.testing.assert_allclose(got, 2 * model.scores(X), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_array_equal(same, X)
    assert seven == 7


def test_axes_by_number_and_by_name(workers: Any) -> None:
    def centred(x: Any, y: Any) -> Any:
        return (x - x.mean(axis=1, keepdims=True)) * y

    z = RNG.random((6, 48))
    for axis, other in ((1, RNG.random((1, 48))), ({"x": 1}, RNG.random((6, 1)))):
        got = fusec.replicate(centred, axis)(z, other)
        np.testing.assert_allclose(got, centred(z, other), rtol=1e-12, atol=1e-14)


class Scaled:
    """A method with options of its own."""

    @fusec.jit(static="power", fp="strict")
    def step(self, x: Any, y: Any, power: int) -> Any:
        return (x ** power).sum(axis=0) * y


def test_methods_keep_the_names_and_options_of_their_parameters(workers: Any) -> None:
    step = fusec.replicate(Scaled().step, {"x": 0})  # which nobody else keeps
    assert step.step.fp == "strict"
    np.testing.assert_allclose(step(X, np.ones(1), 3), (X ** 3).sum(axis=0), rtol=1e-12)
    with pytest.raises(ValueError, match=r"cannot be cut(.|\n)*x: 5"):
        step(X[:5], np.ones(1), 3)


def test_two_stages_of_sums_and_batches_of_several_lengths(workers: Any) -> None:
    def normal(x: Any) -> Any:
        centred = x - x.mean(axis=0)
        return np.abs(centred / np.sqrt((centred ** 2).mean(axis=0))).max()

    step = fusec.replicate(normal)
    for rows in (48, 37, 8, 48):
        np.testing.assert_allclose(step(X[:rows]), normal(X[:rows]), rtol=1e-12)


def test_random_numbers_do_not_depend_on_the_pieces(workers: Any) -> None:
    def noisy(key: Any, x: Any) -> Any:
        return (x + fusec.random.uniform(key, x.shape)).sum(axis=0)

    key = fusec.random.key(3)
    got = fusec.replicate(noisy, {"x": 0})(key, X)
    np.testing.assert_allclose(got, fusec.jit(noisy)(key, X), rtol=1e-12)


def test_the_programs_own_error_with_its_class_and_line(workers: Any) -> None:
    table = fusec.Variable(np.zeros(2), name="table")

    def looked_up(x: Any, i: Any) -> Any:
        table.assign_add(x.mean())
        return table[i] + x.mean()

    def solved(x: Any, a: Any) -> Any:
        return np.linalg.inv(a) * x.mean()

    with pytest.raises(IndexError, match=r"out of bounds(.|\n)*test_replicate.py"):
        fusec.replicate(looked_up, {"x": 0})(X, 5)
    np.testing.assert_array_equal(table.numpy(), np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        fusec.replicate(solved, {"x": 0})(X, np.zeros((2, 2)))


@pytest.mark.parametrize("function", [
    lambda x: x[3], lambda x: x[:2], lambda x: x[3].sum(), lambda x: x[::2], lambda x: x.T[0]])
def test_a_refused_view_has_its_line(workers: Any, function: Any) -> None:
    with pytest.raises(fusec.errors.UnsupportedError, match=r"\n  at .*test_replicate.py:\d+"):
        fusec.replicate(function)(X)


def test_a_step_that_fails_assigns_nothing(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    step = fusec.replicate(model.step)
    step(X, Y)
    before = model.values()
    run = pytest.importorskip("fusec.distributed.replicas.ring").RingMember
    monkeypatch.setattr(run, "begin", lambda self: 1 / 0)
    with pytest.raises(fusec.FusecError, match="ZeroDivisionError"):
        step(X, Y)
    monkeypatch.undo()
    for name, value in before.items():
        np.testing.assert_array_equal(model.weights[name], value)
    assert step(X, Y)["steps"] == 2


# -------------------------------------------------------------------------------------- refusals


def refused(workers: Any, step: Any, match: str, *args: Any, **options: Any) -> None:
    with pytest.raises(fusec.UnsupportedError, match=rf"{match}(.|\n)*cure(.|\n)*test_replicate"):
        fusec.replicate(step, **options)(*args)


def test_what_pieces_cannot_compute_is_refused_with_the_line(workers: Any) -> None:
    refused(workers, lambda x: x[1:] - x[:-1], "beyond the own piece", X)
    refused(workers, lambda x: np.sort(x, axis=0), "np.sort along axis 0", X)
    for rows in (48, 18):
        with pytest.raises(fusec.UnsupportedError, match=r"piece.* of the batch"):
            fusec.replicate(lambda x: x[3])(X[:rows])
    refused(workers, lambda x: np.roll(x, 1, axis=0), "some pieces of the batch have no", X)
    refused(workers, lambda x: np.cumsum(x, axis=0), "a scan over the batch in a replicated", X)
    refused(workers, lambda x: x.var(axis=0), "a variance over the batch in a replicated step", X)
    refused(workers, lambda x: x @ x.T, "for each two rows", X)
    v = fusec.Variable(np.zeros((48, 6)), name="v")
    refused(workers, lambda x: v.assign(x * 2), "part of the batch to Variable v", X)

    def scoped(x: Any) -> Any:
        with fusec.device("/job:worker/task:0"):
            return x.sum(axis=0)

    refused(workers, scoped, "a scope", X)


def test_what_writes_elsewhere_is_refused(workers: Any) -> None:
    def writes(x: Any) -> None:
        x += 1

    def prints(x: Any) -> Any:
        fusec.print(x[0, 0])
        return x

    for step, match in ((writes, "writing to x in a replicated step"), (prints, "printing")):
        with pytest.raises(fusec.UnsupportedError, match=match):
            fusec.replicate(step)(X.copy())


def test_batches_that_do_not_fit_are_refused(workers: Any) -> None:
    for args, options, match in (
            ((X[:7],), {}, r"batch of 7 cannot be cut in 8 pieces"),
            ((X, Y[:40]), {}, r"several lengths(.|\n)*48(.|\n)*40"),
            ((X,), {"pieces": 3}, r"fewer pieces(.|\n)*pieces=4"),
            ((1.0,), {}, "no argument is an array"),
            ((X,), {"axis": {"z": 0}}, r"'z'(.|\n)*x: .*\[48, 6\]"),
    ):
        with pytest.raises(ValueError, match=match):
            fusec.replicate(lambda x, y=0: x, **options)(*args)
    for options in ({"pieces": 0}, {"transfer": "int8"}, {"axis": 1.5}):
        with pytest.raises(ValueError, match="given"):
            fusec.replicate(sums, **options)
    outer = fusec.jit(lambda x: fusec.replicate(sums)(x))
    with pytest.raises(fusec.UnsupportedError, match="inside of a compiled function"):
        outer(X)


def test_without_a_cluster_it_says_so() -> None:
    with cluster_of(1):
        pass
    with pytest.raises(RuntimeError, match=r"there is none(.|\n)*fusec.cluster"):
        fusec.replicate(sums)(X)


def test_a_ring_from_a_stranger_is_admitted_first() -> None:
    form = {"name": "r", "member": 0, "tasks": [0, 1], "starts": [0, 1, 2], "join": "add",
            "transfer": "exact"}
    spec = programs.RingSpec
    assert spec.read(form, 2, 2).to_form() == {**form, "tasks": (0, 1), "starts": (0, 1, 2)}
    for change in ({"member": 2}, {"tasks": [0, 0]}, {"starts": [0, 2, 1]}, {"join": "eval"},
                   {"transfer": "pickle"}, {"starts": [1, 2, 3]}):
        with pytest.raises(ValueError, match="a ring"):
            spec.read({**form, **change}, 2, 2)
    with pytest.raises(ValueError, match="a ring"):
        spec.read(form, 3, 2)
