"""One connection of Dask's: messages are posted by any thread, and written in order.

What is posted while a message is on its way goes with the next write, so that a request and the
values that it needs are one write.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fusec.core import locks, log

from .wire import SERIALIZERS, packed

Message = Mapping[str, Any]


class Connection:
    """Both directions of a comm; made and served in its event loop."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.loop = comm, asyncio.get_running_loop()
        comm.allow_offload = False  # to ask takes longer than most messages; arrays are not copied
        self.heard = time.monotonic()  # when something last came
        self._copies = comm.local_address.startswith("inproc")
        self._queue: deque[dict[str, Any]] = deque()
        self._lock = locks.Lock()
        self._is_awake = False
        self._sleeping: asyncio.Future[None] | None = None

    def post(self, message: Message, values: Sequence[Any] = ()) -> None:
        """Send it after earlier ones; does not wait, and does nothing once the comm is closed."""
        whole = {**message, "values": packed(values, self._copies)} if values else {**message}
        with self._lock:
            self._queue.append(whole)
            was_awake, self._is_awake = self._is_awake, True
        if not was_awake:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self._wake)

    async def serve(self, handle: Callable[[dict[str, Any]], None]) -> Exception:
        """Write posted messages and hand over those that come, until the comm breaks: its error."""
        writing = asyncio.ensure_future(self._write())
        try:
            while True:
                for message in await self.comm.read():
                    self.heard = time.monotonic()
                    handle(message)
        except OSError as error:
            return error
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a message that is none: nothing more of it is believed
            log.write(log.WARN, f"a connection to {self.comm.peer_address} is closed: {error!r}")
            return error
        finally:
            writing.cancel()
            self.comm.abort()

    def _wake(self) -> None:
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def _write(self) -> None:
        try:
            while True:
                if not self._queue:
                    self._sleeping = self.loop.create_future()
                    await self._sleeping
                with self._lock:
                    batch, self._is_awake = [*self._queue], False
                    self._queue.clear()
                if batch:
                    await self.comm.write(batch, serializers=SERIALIZERS, on_error="raise")
        except OSError:
            return  # who reads it sees that as well
        except Exception as error:
            log.write(log.WARN, f"a message to {self.comm.peer_address} cannot be sent: {error!r}")
            self.comm.abort()

    def abort(self) -> None:
        """Close it, from any thread."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.comm.abort)
