"""Machine code by what it depends on: alive as long as a plan uses it, and a little longer."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
RECENT = 32  # that outlive their plans, for functions that are jitted at each use


class CodeCache(Generic[K, V]):
    """A dictionary that does not keep its values alive, but for those found or made last.

    A plan that holds a value holds its machine code, whose memory is freed with the last of them.
    """

    def __init__(self) -> None:
        self._alive: weakref.WeakValueDictionary[K, V] = weakref.WeakValueDictionary()
        self._recent: deque[V] = deque(maxlen=RECENT)

    def get(self, key: K) -> V | None:
        value = self._alive.get(key)
        if value is not None:
            self._recent.append(value)
        return value

    def add(self, key: K, value: V) -> V:
        self._alive[key] = value
        self._recent.append(value)
        return value

    def clear(self) -> None:
        """Forget every value; those in use live on with their plans."""
        self._alive.clear()
        self._recent.clear()
