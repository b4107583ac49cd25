"""Control flow on data: branches and loops of the user's function as nodes of the graph."""

from __future__ import annotations

from .hooks import ControlHooks
from .ranges import Joined, TracedRange

__all__ = ["ControlHooks", "Joined", "TracedRange"]
