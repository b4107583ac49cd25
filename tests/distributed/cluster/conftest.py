"""Workers of the ``client`` that a module has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fusec


@pytest.fixture(scope="module")
def workers(client: Any) -> Iterator[Any]:
    with fusec.cluster(client) as workers:
        yield workers
