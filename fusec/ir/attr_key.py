"""Attributes of nodes as keys: equal where a text of the graph would be."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .graph import Graph
from .text.text import print_attr

_EXACT = (int, str, bool, type(None))  # equal only if they are the same


def attr_key(value: Any) -> Hashable:
    """By its exact text, so 0.0 is not -0.0.  A graph stands for itself: the text of nested
    branches would be written once per level."""
    kind = type(value)
    if kind in _EXACT:
        return kind, value
    if kind is tuple and all(type(v) is int for v in value):
        return value
    return id(value) if isinstance(value, Graph) else print_attr(value, locs=False)
