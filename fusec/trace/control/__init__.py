"""Control flow on data: branches and loops of the user's function as nodes of the graph."""

from __future__ import annotations

from .hooks import ControlHooks
from .sequences import (
    Enumerate,
    NdEnumerate,
    Product,
    PythonIterator,
    Reversed,
    TracedRange,
    Zip,
    table,
)

__all__ = [
    "ControlHooks",
    "Enumerate",
    "NdEnumerate",
    "Product",
    "PythonIterator",
    "Reversed",
    "TracedRange",
    "Zip",
    "table",
]
