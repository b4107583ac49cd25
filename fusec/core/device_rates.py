"""Measured rates of devices: who measures them says how to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Rates(Protocol):
    """Measured rates of a device."""

    @property
    def bytes_per_ns(self) -> float: ...
    @property
    def flops_per_ns(self) -> float: ...


rates_of: Callable[[str], Rates | None] | None = None  # by the short name of a device
