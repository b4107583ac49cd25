"""Outcomes of a plan's call without results."""

from __future__ import annotations

import enum


class Outcome(enum.Enum):
    """Answers of a plan that are not results; compare with ``is``."""

    MISS = "an argument does not fit the plan"
    BUSY = "another thread is running the plan"
    FAILED = "a kernel reported an error"


MISS, BUSY, FAILED = Outcome.MISS, Outcome.BUSY, Outcome.FAILED

__all__ = ["BUSY", "FAILED", "MISS", "Outcome"]
