"""Workers as devices: scopes, values between workers, Variables there, errors; in one process."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusec

distributed = pytest.importorskip("distributed")
links = pytest.importorskip("fusec.distributed.cluster.links")

X = np.random.default_rng(0).standard_normal((20, 3))
W0, W1 = "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="inproc") as cluster, distributed.Client(cluster) as client:
        yield client


@fusec.jit
def over_two(x: Any) -> Any:
    with fusec.device(W0):
        a = np.sin(x) * 2
        b = np.sort(a, axis=0)
    with fusec.device(W1):
        c = np.exp(a).sum(axis=1)
    return b, c, (a - 1).mean()


def plain(x: Any) -> Any:
    a = np.sin(x) * 2
    return np.sort(a, axis=0), np.exp(a).sum(axis=1), (a - 1).mean()


def test_values_go_between_workers_and_come_home(workers: Any) -> None:
    for got, want in zip(over_two(X), plain(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_bits_are_those_of_one_process(workers: Any) -> None:
    alone = fusec.jit(plain)
    for got, want in zip(over_two(X), alone(X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_results_can_be_written(workers: Any) -> None:
    over_two(X)[0][:] = 0


def test_one_request_a_worker_and_step(workers: Any) -> None:
    over_two(X)
    before = [link.requests for link in workers._links.values()]
    for _ in range(5):
        over_two(X)
    assert [link.requests - n for link, n in zip(workers._links.values(), before, strict=True)] == (
        [5, 5])


def test_devices_are_listed(workers: Any) -> None:
    assert [d.name for d in workers.devices] == [f"{w}/device:CPU:0" for w in (W0, W1)]
    assert "/job:worker/task:1/device:CPU:0" in str(fusec.devices())
    with pytest.raises(ValueError, match=r"no device /job:worker/task:7"), (
            fusec.device("/job:worker/task:7")):
        over_two(X)


def test_names_without_a_job_are_this_process_s(workers: Any) -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        with fusec.device("CPU:0"):
            return np.sin(x) + 1

    before = [link.requests for link in workers._links.values()]
    np.testing.assert_allclose(f(X), np.sin(X) + 1)
    assert [link.requests for link in workers._links.values()] == before


def test_numbers_dtypes_and_empty_arrays_travel(workers: Any) -> None:
    @fusec.jit
    def f(x: Any, n: Any) -> Any:
        with fusec.device(W0):
            a = x + n
        with fusec.device(W1):
            return a, a.sum() * n

    for x in (np.arange(4), np.arange(3, dtype=np.float32), np.ones(2, complex), np.zeros((0, 2)),
              np.arange(100_000.0), np.asfortranarray(X), X[::2, ::-1]):
        for n in (2, np.float32(1.5)):
            got, total = f(x, n)
            want = x + n
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
            np.testing.assert_allclose(total, want.sum() * n, rtol=1e-12)


def test_loops_run_on_a_worker_as_a_whole(workers: Any) -> None:
    @fusec.jit
    def f(x: Any, n: int) -> Any:
        with fusec.device(W1):
            k = 0
            while k < n:
                x = x * 0.5 + 1
                k += 1
            return x

    want = X
    for _ in range(5):
        want = want * 0.5 + 1
    np.testing.assert_allclose(f(X, np.int64(5)), want)


# ------------------------------------------------------------------------------------- Variables


def variable_on(worker: str, value: Any) -> fusec.Variable:
    with fusec.device(worker):
        return fusec.Variable(value, name="v")


def test_a_variable_lives_on_its_worker(workers: Any) -> None:
    v = variable_on(W1, np.zeros(3))

    @fusec.jit
    def add(x: Any) -> None:
        with fusec.device(W1):
            v.assign_add(x.sum(axis=0))

    for _ in range(3):
        add(X)
    assert v.occupancy.away is not None  # nothing has come here
    np.testing.assert_allclose(v, 3 * X.sum(axis=0))
    assert v.occupancy.away is None
    v.assign(np.ones(3))  # here, and the worker gets it with the next step
    add(X)
    np.testing.assert_allclose(v.numpy(), 1 + X.sum(axis=0))


def test_other_places_read_and_assign_it(workers: Any) -> None:
    v = variable_on(W0, np.ones(3))

    @fusec.jit
    def f(x: Any) -> Any:
        with fusec.device(W1):
            y = x + v
        with fusec.device(W0):
            v.assign(v * 2)
        return y

    for k in (1.0, 2.0, 4.0):
        np.testing.assert_array_equal(f(X), X + k)
    np.testing.assert_array_equal(fusec.jit(lambda x: x + v)(X), X + 8)  # no scope

    @fusec.jit
    def here(x: Any) -> None:
        v.assign_add(x)

    here(np.ones(3))
    np.testing.assert_array_equal(f(X), X + 9)


def test_values_are_not_sent_again(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    v = variable_on(W0, np.ones(1000))
    sent: list[int] = []
    link = workers._links[0]
    post = link.post
    monkeypatch.setattr(link, "post", lambda message, values=(): (
        sent.append(sum(np.asarray(x).nbytes for x in values)), post(message, values)))

    @fusec.jit
    def f() -> Any:
        with fusec.device(W0):
            return v.numpy().sum()

    assert f() == 1000
    first = sum(sent)
    assert f() == f() == 1000
    assert first == sum(sent) == 8000


def test_a_checkpoint_saves_and_restores_it(workers: Any, tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    v = variable_on(W0, np.ones(3))

    @fusec.jit
    def double() -> None:
        with fusec.device(W0):
            v.assign(v * 2)

    double()
    path = fusec.Checkpoint(v=v).save(str(tmp_path / "v"))
    double()
    fusec.Checkpoint(v=v).restore(path)
    double()
    np.testing.assert_array_equal(v, np.full(3, 4.0))


def test_a_copy_of_a_variable_of_a_worker_lives_there(workers: Any) -> None:
    v = variable_on(W1, np.zeros(3))
    assert copy.copy(v).device == v.device


# ---------------------------------------------------------------------------------------- errors


def test_errors_are_the_program_s_own(workers: Any) -> None:
    v = variable_on(W1, np.zeros(3))

    @fusec.jit
    def f(x: Any, i: Any) -> Any:
        with fusec.device(W1):
            v.assign_add(x[0])
        with fusec.device(W0):
            return x[i] + 1

    f(X, np.array([1, 2]))
    with pytest.raises(IndexError, match=r"out of bounds(.|\n)*test_workers_as_devices") as one:
        f(X, np.array([1, 50]))
    with pytest.raises(IndexError) as other:
        fusec.jit(lambda x, i: x[i] + 1)(X, np.array([1, 50]))
    assert str(one.value).splitlines()[0] == str(other.value).splitlines()[0]
    np.testing.assert_array_equal(f(X, np.array([0])), X[:1] + 1)  # the next step is a new one


def test_a_step_that_fails_assigns_as_on_one_device(workers: Any) -> None:
    def program(v: fusec.Variable, w: fusec.Variable) -> Any:
        @fusec.jit
        def f(x: Any, i: Any) -> Any:
            with fusec.device(v.device):
                v.assign_add(x[0])
            with fusec.device(w.device):
                y = x[i]
                w.assign_add(x[1])
            return y

        return f

    for there in (True, False):
        places = (W0, W1) if there else ("CPU:0", "CPU:0")
        v, w = variable_on(places[0], np.zeros(3)), variable_on(places[1], np.zeros(3))
        f = program(v, w)
        f(X, np.array([0]))
        with pytest.raises(IndexError):
            f(X, np.array([99]))
        np.testing.assert_array_equal(v, 2 * X[0])
        np.testing.assert_array_equal(w, X[1])


def test_what_calls_the_program_is_refused(workers: Any) -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        with fusec.device(W0):
            fusec.print(x[0, 0])
            return x + 1

    with pytest.raises(fusec.UnsupportedError, match=r"task:0(.|\n)*outside of the scope"):
        f(X)


def test_sizes_of_the_run_are_refused_as_operands(workers: Any) -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        with fusec.device(W0):
            some = x[x > 0]
        with fusec.device(W1):
            return some * 2

    with pytest.raises(fusec.UnsupportedError, match="size that only the run knows"):
        f(X)


def test_hostile_programs_are_not_admitted() -> None:
    from fusec.distributed.cluster.worker_programs import read_program

    for text in ("{}", '{"values": 1, "actions": [{"kind": "eval"}]}', "[1]", "{"):
        with pytest.raises(ValueError, match="not admitted"):
            read_program(text, {})


def test_other_versions_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "versions", lambda: ("0.0.1", "2.0"))
    with pytest.raises(RuntimeError, match=r"another version(.|\n)*0\.0\.1(.|\n)*install"):
        fusec.cluster(client)


def test_a_cluster_that_does_not_open_leaves_nothing(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, closed = links.Link.open, []

    async def fails(self: Any, session: str, args: Any) -> None:
        if self.task == 1:
            raise fusec.WorkerLostError("not there")
        await opened(self, session, args)

    monkeypatch.setattr(links.Link, "open", fails)
    monkeypatch.setattr(links.Link, "close", lambda self, cause: (
        closed.append(self.task), self.break_off(cause)))
    with pytest.raises(fusec.WorkerLostError, match="not there"):
        fusec.cluster(client)
    assert closed == [0]


def test_closing_ends_threads_and_connections(client: Any) -> None:
    with fusec.cluster(client) as workers:
        over_two(X)
        mine = [*workers._links.values()]
        assert any("fusec-session" in t.name for t in threading.enumerate())
        services = [w.fusec_service for w in client.cluster.workers.values()]
        between = [link for s in services for link in s.peers._links.values()]
        assert between and all(len(s.sessions) == 1 for s in services)
    waited(lambda: not any(s.sessions or s.peers._links for s in services))
    waited(lambda: all(link._connection.comm.closed() for link in (*mine, *between)))
    waited(lambda: not any("fusec-session" in t.name for t in threading.enumerate()))
    waited(lambda: all(link._watching.done() and link._serving.done() for link in mine))


def waited(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_so()


def test_a_client_that_connects_again_has_the_newer_session(client: Any) -> None:
    @fusec.jit
    def total(x: Any) -> Any:
        with fusec.device(W0):
            y = v + x
        with fusec.device(W1):
            return y.sum()

    with fusec.cluster(client) as workers:
        v = variable_on(W0, np.ones(3))
        assert total(X[0]) == pytest.approx(3 + X[0].sum())
        for task in (0, 1):  # the worker does not know yet that the connection is broken
            workers._links[task].break_off("test")
        with pytest.raises(fusec.WorkerLostError):
            total(X[0])
        workers.recover(20)
        for _ in range(3):  # what v is was known here: it is sent again
            assert total(X[0]) == pytest.approx(3 + X[0].sum())
        services = [w.fusec_service for w in client.cluster.workers.values()]
        waited(lambda: all(len(s.sessions) == 1 for s in services))
        assert total(X[1]) == pytest.approx(3 + X[1].sum())


def test_other_workers_send_values_alone(client: Any) -> None:
    with fusec.cluster(client) as workers:
        service = next(w.fusec_service for w in client.cluster.workers.values())
        for op in ("load", "run", "abort", "fetch", "drop", "commit", "ping"):
            with pytest.raises(ValueError, match="another worker asks"):
                service._peer_message({"op": op, "session": workers._session})


def test_only_clients_are_taken() -> None:
    with pytest.raises(TypeError, match="takes a client"):
        fusec.cluster("tcp://localhost:8786")


def test_messages_never_have_pickles() -> None:
    from fusec.distributed.cluster.wire import packed, unpacked

    with pytest.raises(TypeError):
        packed([np.array([object()])], False)
    with pytest.raises((TypeError, ValueError)):
        unpacked([["array", "|O", [1], b"12345678"]])
    values = [X, np.float32(2), 3, True, 1j]
    back = unpacked(pickle.loads(pickle.dumps(packed(values, False))))
    assert [type(v) for v in back] == [type(v) for v in values]
