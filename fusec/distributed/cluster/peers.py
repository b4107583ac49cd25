"""Connections from a worker to others, made when something is first sent there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import distributed.comm

from fusec.core import locks

from .connection import Connection

Lost = Callable[[str], None]
_PEER = "fusec-peer"


class PeerLink:
    """One connection: what is sent before it is made waits."""

    def __init__(self, service: Any, address: str, incarnation: int) -> None:
        self.address, self.incarnation = address, incarnation
        self._early: list[tuple[Mapping[str, Any], Sequence[Any]]] = []
        self._connection: Connection | None = None
        self._lost: dict[int, Lost] = {}
        self._cause, self._is_closed = "", False
        self._lock = locks.Lock()
        service.worker.loop.add_callback(self._serve, service)

    def post(self, message: Mapping[str, Any], values: Sequence[Any]) -> None:
        """Send it."""
        with self._lock:
            if self._connection is None:
                self._early.append((message, values))
                return
        self._connection.post(message, values)

    def watch(self, step: int, lost: Lost) -> None:
        """Call this, with the cause, when the connection breaks."""
        with self._lock:
            self._lost[step] = lost
            cause = self._cause
        if cause:
            lost(cause)

    def close(self) -> None:
        """End the connection: nobody sends any more."""
        with self._lock:
            self._is_closed, connection = True, self._connection
        if connection is not None:
            connection.abort()

    def forget(self, step: int) -> None:
        """Nobody waits for that step any more."""
        self._lost.pop(step, None)

    async def _serve(self, service: Any) -> None:
        try:
            cause = await self._connected(service)
        except Exception as error:  # whatever it is, steps that wait must be told
            cause = f"{type(error).__name__}: {error}"
        service.peers.drop(self)
        with self._lock:
            self._cause, every = cause, [*self._lost.values()]
        for lost in every:
            lost(cause)

    async def _connected(self, service: Any) -> str:
        """Send until the connection breaks; why."""
        comm = await distributed.comm.connect(self.address, **service.worker.connection_args)
        try:
            await comm.write({"op": _PEER, "reply": False, "incarnation": self.incarnation})
            answer = await comm.read()
        except BaseException:
            comm.abort()
            raise
        if answer["status"] != "ok":
            comm.abort()
            return f"it is another process now (incarnation {answer['incarnation']:x})"
        connection = Connection(comm)
        with self._lock:
            for message, values in self._early:
                connection.post(message, values)
            self._early, self._connection = [], connection
            if self._is_closed:
                connection.abort()
        error = await connection.serve(lambda message: None)
        return f"{type(error).__name__}: {error}"


class Peers:
    """The connections of one worker, by address and incarnation."""

    def __init__(self, service: Any) -> None:
        self.service = service
        self._lock = locks.Lock()
        self._links: dict[tuple[str, int], PeerLink] = {}

    def link(self, address: str, incarnation: int) -> PeerLink:
        """That to this process."""
        key = address, incarnation
        with self._lock:
            if key not in self._links:
                self._links[key] = PeerLink(self.service, address, incarnation)
            return self._links[key]

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            links, self._links = [*self._links.values()], {}
        for link in links:
            link.close()

    def drop(self, link: PeerLink) -> None:
        """It is broken: the next message makes another."""
        with self._lock:
            if self._links.get((link.address, link.incarnation)) is link:
                del self._links[link.address, link.incarnation]
