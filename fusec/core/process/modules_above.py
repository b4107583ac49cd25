"""Modules of rooms above the one that uses them, loaded when they are used; each use says so."""

from __future__ import annotations

import importlib
from typing import Any


def module_above(name: str) -> Any:
    """The module ``fusec.<name>``, which may itself import the caller's room."""
    return importlib.import_module(f"fusec.{name}")
