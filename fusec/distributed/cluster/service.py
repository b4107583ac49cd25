"""What runs on a worker of Dask's: its port answers fusec's clients and fusec on other workers.

No port is opened: connections come to the worker's own, with the cluster's addresses and TLS.
"""

from __future__ import annotations

import os
from typing import Any

from distributed import Status
from distributed.diagnostics.plugin import WorkerPlugin

from fusec.core import gpus

from ..block_tasks import versions
from .connection import Connection
from .handles import VARIABLE, answer
from .peers import Peers
from .sessions import Session

SESSION, PEER = "fusec-session", "fusec-peer"
_ATTRIBUTE = "fusec_service"


class Service(WorkerPlugin):
    """Puts a `WorkerService` on each worker, once."""

    name = "fusec"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Answer on this worker's port."""
        if not hasattr(worker, _ATTRIBUTE):
            setattr(worker, _ATTRIBUTE, WorkerService(worker))


class WorkerService:
    """The service of one worker.  ``incarnation`` is a random number of it: what was told of an
    earlier process of the same name, or to it, is not taken for its."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.incarnation = int.from_bytes(os.urandom(7))
        self.sessions: dict[str, Session] = {}
        self.peers = Peers(self)
        worker.handlers[SESSION] = self.serve_client
        worker.handlers[PEER] = self.serve_peer
        worker.handlers[VARIABLE] = self.serve_reader

    @property
    def threads(self) -> int:
        return int(self.worker.state.nthreads)

    async def serve_client(self, comm: Any, session: str, task: int, made_with: Any) -> Any:
        """Answer a client until it goes; then everything of its session ends."""
        mine = versions()
        if [*made_with] != [*mine]:
            await comm.write({"status": "versions", "versions": mine})
            return Status.dont_reply
        await comm.write({
            "status": "ok", "incarnation": self.incarnation, "threads": self.threads,
            "memory": int(self.worker.memory_manager.memory_limit or 0),
            "gpus": int(bool(gpus.used()))})
        connection = Connection(comm)
        opened, before = Session(self, session, task, connection), self.sessions.get(session)
        self.sessions[session] = opened
        if before is not None:
            before.connection.abort()
        try:
            await connection.serve(opened.handle)
        finally:
            if self.sessions.get(session) is opened:  # else the client has connected again
                del self.sessions[session]
            opened.close()
            if not self.sessions:
                self.peers.close()
        return Status.dont_reply

    async def serve_peer(self, comm: Any, incarnation: int) -> Any:
        """Take what another worker sends, if it means this process."""
        if incarnation != self.incarnation:
            await comm.write({"status": "stale", "incarnation": self.incarnation})
            return Status.dont_reply
        await comm.write({"status": "ok"})
        await Connection(comm).serve(self._peer_message)
        return Status.dont_reply

    async def serve_reader(self, comm: Any, incarnation: int, session: str, number: int) -> Any:
        """Send a Variable's value to who has its handle."""
        return await answer(self, comm, incarnation, session, number)

    def _peer_message(self, message: dict[str, Any]) -> None:
        session = self.sessions.get(message["session"])
        if message["op"] != "value":
            raise ValueError(f"another worker asks for {message['op']!r}")
        if session is not None:  # else it has ended here
            session.handle(message)
