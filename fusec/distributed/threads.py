"""The cores of a worker: a task has one, as Dask counts them."""

from __future__ import annotations

import sys
from typing import Any

from fusec import config

_is_settled: list[bool] = []


def keep_to_slot() -> None:
    """In a process that is a worker of Dask's kernels use one thread: tasks that run at the same
    time have the others.

    Elsewhere nothing changes: a client that runs tasks in its own threads keeps its setting.
    """
    if not _is_settled:
        _is_settled.append(True)
        if is_workers_own():
            config.num_threads = 1


def is_workers_own() -> bool:
    """Whether this process is there for a worker: it has one, and no client of its own."""
    worker: Any = sys.modules.get("distributed.worker")
    client: Any = sys.modules.get("distributed.client")
    if worker is None or (client is not None and client._global_clients):
        return False
    return bool(list(getattr(worker.Worker, "_instances", ())))
