"""Variables of workers as other processes have them: a name, a worker, an incarnation; no value.

``pickle.dumps`` of a Variable that lives on a worker gives a `VariableHandle`, so that tasks of
Dask's can take it.  Its value is asked of its worker when it is read, over the worker's own port.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Mapping
from typing import Any

import distributed.comm
import numpy as np

from fusec.core.occupancy import VERSION, Hold, pickle_away
from fusec.core.program_errors import WorkerLostError
from fusec.core.records import dataclass
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices.variable_copies import current_value
from fusec.runtime.remote.remote_device import worker_of
from fusec.runtime.remote.runs_over_workers import RemoteValue, worker_key

from .links import Link
from .wire import SERIALIZERS, packed, unpacked

VARIABLE = "fusec-variable"  # the operation that a worker's port answers
_SECONDS = 60.0


@dataclass(frozen=True)
class VariableHandle:
    """A Variable that lives on a worker, for other processes to read.

    It reads the value that the worker has: after the last step there that assigned it, or when it
    was last pickled.  ``incarnation`` is of the worker's process: another process in its
    place has not this Variable, and says so.
    """

    name: str
    device: str
    worker: str  # its address
    incarnation: int
    session: str  # of the client that made it
    number: int
    dtype: np.dtype
    shape: tuple[int, ...]

    def numpy(self) -> np.ndarray:
        """The value of now.

        Raises `WorkerLostError` where the worker is gone, another process has its place, or nobody
        has the Variable any more.
        """
        try:
            answer = _waited(self._asked)
        except (OSError, TimeoutError) as error:
            raise self._lost(f"{type(error).__name__}: {error}") from None
        if answer["status"] != "ok":
            raise self._lost(_CAUSES[answer["status"]], answer.get("incarnation"))
        return np.asarray(unpacked(answer["values"])[0])

    read_value = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self.numpy()
        return value if dtype is None else value.astype(dtype)

    async def _asked(self, connection_args: Mapping[str, Any]) -> Any:
        comm = await distributed.comm.connect(self.worker, **connection_args)
        try:
            await comm.write({"op": VARIABLE, "reply": True, "incarnation": self.incarnation,
                              "session": self.session, "number": self.number})
            return await comm.read()
        finally:
            comm.abort()

    def _lost(self, cause: str, present: int | None = None) -> WorkerLostError:
        values = [("cause", cause), ("incarnation", f"{self.incarnation:x}")]
        if present is not None:
            values.append(("present one", f"{present:x}"))
        return WorkerLostError(
            f"Variable {self.name} of {self.device} ({self.worker}) cannot be read",
            cure="restore a checkpoint where the Variable was made, and pickle it again",
            values=values)


_CAUSES = {"stale": "another process has the worker's place",
           "session": "the client that made it has closed its cluster",
           "gone": "the client that made it has dropped it"}


def _waited(ask: Any) -> Any:
    """The answer, by the event loop of this process's worker, or client, or one of its own: these
    know the cluster's TLS settings."""
    worker, client = _own("worker", "get_worker"), _own("client", "default_client")
    if worker is not None:
        return _from(worker.loop.asyncio_loop, ask(worker.connection_args))
    if client is not None and not client.asynchronous:
        return _from(client.loop.asyncio_loop, ask(client.connection_args))
    return asyncio.run(asyncio.wait_for(ask({}), _SECONDS))


def _own(module: str, function: str) -> Any:
    """This thread's worker, or the process's client; None where it has none."""
    loaded: Any = sys.modules.get(f"distributed.{module}")
    try:
        return None if loaded is None else getattr(loaded, function)()
    except ValueError:
        return None


def _from(loop: Any, asking: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(asyncio.wait_for(asking, _SECONDS), loop).result()


# --------------------------------------------------------------------------- where the Variable is


def handle_of(variable: Any) -> VariableHandle:
    """The handle of a Variable that lives on a worker, which has its value then.

    Raises `WorkerLostError` where the worker, or the value with it, is lost.
    """
    link: Any = worker_of(DeviceName.parse(variable.device).task or 0)
    assert isinstance(link, Link)
    occupancy = variable.occupancy
    number = link.number_of(occupancy)
    if current_value(occupancy, worker_key(link)) is None:
        with Hold([(occupancy, False)]):
            link.put(number, variable.buffer)
            occupancy.copies[worker_key(link)] = RemoteValue(
                link, number, int(occupancy.facts[VERSION]), variable.buffer)
    return VariableHandle(variable.name, variable.device, link.address, link.incarnation,
                          link.session, number, variable.dtype, variable.shape)


def _reduced(variable: Any) -> tuple[Any, ...]:
    handle = handle_of(variable)
    return VariableHandle, (
        handle.name, handle.device, handle.worker, handle.incarnation, handle.session,
        handle.number, handle.dtype, handle.shape)


pickle_away(_reduced)


async def answer(service: Any, comm: Any, incarnation: int, session: str, number: int) -> Any:
    """A worker's answer to who reads a Variable of it."""
    if incarnation != service.incarnation:
        return {"status": "stale", "incarnation": service.incarnation}
    found = service.sessions.get(session)
    value = None if found is None else found.variables.get(number)
    if value is None:
        return {"status": "session" if found is None else "gone"}
    await comm.write({"status": "ok", "values": packed([value], True)}, serializers=SERIALIZERS,
                     on_error="raise")
    return distributed.Status.dont_reply


__all__ = ["VARIABLE", "VariableHandle", "answer", "handle_of"]
