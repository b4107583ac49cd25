"""`fusec.cluster`: the workers of a client of Dask's as devices of this process."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from fusec.core import locks
from fusec.core.program_errors import WorkerLostError
from fusec.errors import user_error
from fusec.placement.devices import Devices
from fusec.runtime.devices import registry
from fusec.runtime.remote.remote_device import RemoteDevice, use_workers

from .links import Link
from .service import Service

_present: list[Cluster] = []
_changing = locks.Lock()


class Cluster:
    """The workers of a client, as ``/job:worker/task:k``.

    Tasks are numbered by the workers' names and keep their numbers: a worker that Dask starts anew
    has the number of the one with its name.  Use it as a context manager, or call `close`.
    """

    def __init__(self, client: Any, health_seconds: float) -> None:
        self._client, self._patience = client, health_seconds
        self._session = uuid.uuid4().hex
        self._links: dict[int, Link] = {}
        self._names: list[str] = []
        self.is_closed = False

    # -- what there is

    @property
    def devices(self) -> Devices:
        """The devices of its workers, by task."""
        return Devices(self._devices)

    @property
    def workers(self) -> tuple[str, ...]:
        """The addresses of its workers, by task."""
        return tuple(self._links[task].address for task in sorted(self._links))

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self._links)} workers"
        return f"<fusec.cluster of {self._client.scheduler.address}: {state}>"

    # -- its life

    def open(self) -> None:
        """Connect to all workers; see `cluster`."""
        self._client.register_plugin(Service())
        found = self._found()
        self._names = sorted(found, key=_in_order)
        if not found:
            raise WorkerLostError(
                "the cluster has no workers",
                cure="client.wait_for_workers(n) before fusec.cluster(client)")
        self._connect(found)

    def recover(self, timeout: float = 60.0) -> None:
        """Wait until every worker that there was is there again, and connect to those that were
        started anew.

        Their Variables are lost, with everything that lay there alone: restore a checkpoint.
        Raises ``TimeoutError`` where a worker does not come back within ``timeout`` seconds: the
        cluster never goes on with fewer.
        """
        self._check_open()
        last = time.monotonic() + timeout
        while True:
            try:
                found = self._found()
                missing = [name for name in self._names if name not in found]
                if not missing:
                    self._connect(found)
                    return
            except WorkerLostError as error:  # it died again, or has not begun to answer
                missing = [str(error)]
            if time.monotonic() > last:
                raise user_error(
                    TimeoutError, f"workers did not come back in {timeout:g} seconds", None,
                    "start them again (Dask's nannies do so by themselves), or make a new cluster",
                    values=[("missing", ", ".join(missing)), ("needed", len(self._names))])
            time.sleep(0.1)

    def close(self) -> None:
        """Let go of the workers: their devices are no more, and Variables there are lost."""
        with _changing:
            if self.is_closed:
                return
            self.is_closed = True
            if self in _present:
                _present.remove(self)
                use_workers({})
                registry.replace_remote(())
        for link in self._links.values():
            link.close("the cluster was closed")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.is_closed:
            raise user_error(RuntimeError, "the cluster is closed", None, "fusec.cluster(client)")

    # -- connections

    def _found(self) -> dict[str, str]:
        """The addresses of the workers that there are, by name."""
        workers: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return {str(worker["name"]): address for address, worker in workers.items()}

    def _connect(self, found: Mapping[str, str]) -> None:
        """Connect to the workers to which there is no connection."""
        for task, name in enumerate(self._names):
            link = self._links.get(task)
            if link is None or link.cause or link.address != found[name]:
                if link is not None:
                    link.close("another process has its place")
                fresh = Link(task, name, found[name], self._patience, self._link)
                self._client.sync(self._open, fresh)
                self._links[task] = fresh
        self._devices = [device for task in sorted(self._links)
                         for device in _devices_of(self._links[task])]
        with _changing:
            registry.replace_remote(self._devices)
            use_workers(self._links)

    async def _open(self, link: Link) -> None:
        patience = 10 * self._patience
        try:
            await asyncio.wait_for(link.open(self._session, self._client.connection_args), patience)
        except TimeoutError:
            raise WorkerLostError(
                f"{link.title} has not answered for {patience:g} seconds",
                cure="look at the worker's log") from None

    def _link(self, task: int) -> Link:
        return self._links[task]


def _devices_of(link: Link) -> list[RemoteDevice]:
    facts = link.facts
    assert facts is not None
    return [RemoteDevice(link.task, type_, facts.threads, facts.memory)
            for type_ in ("CPU", *["GPU"] * facts.gpus)]


def _in_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdigit() else (1, 0, name)


def present_cluster() -> Cluster | None:
    """The cluster that there is."""
    return _present[-1] if _present else None


def cluster(client: Any = None, *, health_seconds: float = 4.0) -> Cluster:
    """The workers of a client of Dask's as devices ``/job:worker/task:k/device:CPU:0``, and
    ``GPU:0`` where a worker has one.

    ``client``: a `distributed.Client`, by default the present one.  ``health_seconds``: a worker
    that does not answer for so long is lost.  There is one cluster at a time: another call closes
    the one before.

    Raises ``RuntimeError`` for workers with another version of fusec or NumPy, `WorkerLostError`
    where a worker cannot be reached or there is none, ``TypeError`` for another client.
    """
    client = _checked(client)
    made = Cluster(client, float(health_seconds))
    with _changing:
        before = [*_present]
    for each in before:
        each.close()
    try:
        made.open()
    except BaseException:
        made.close()
        raise
    with _changing:
        _present.append(made)
    return made


def _checked(client: Any) -> Any:
    from distributed import Client, default_client

    if client is None:
        client = default_client()
    if not isinstance(client, Client):
        raise user_error(TypeError, "fusec.cluster takes a client of Dask's", None,
                         "fusec.cluster(distributed.Client(address))",
                         values=[("given", type(client).__name__)])
    if client.asynchronous:
        raise user_error(
            TypeError, "an asynchronous client cannot be waited for by calls of functions", None,
            "distributed.Client(address) outside of coroutines")
    return client
