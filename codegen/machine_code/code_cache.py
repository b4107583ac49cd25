"""A cache of machine code: an entry lives while a plan uses it, and the latest ones longer."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
RECENT = 32  # entries that outlive their plans, for programs that jit a function anew at each use


class CodeCache(Generic[K, V]):
    """A weak-valued dictionary that also keeps its `RECENT` last used values alive.

    Plans hold the values that they use.  When the last holder of a value goes, its machine code is
    unloaded.
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
        """Forget every value; plans keep those that they use."""
        self._alive.clear()
        self._recent.clear()
