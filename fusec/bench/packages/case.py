"""The calls of a package: functions by dotted name, with their arguments."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cases:
    """Calls of a package: arguments by the function's name below ``home``, an imported module.

    A name may have a word after a space, which tells several calls of one function apart.
    """

    home: str
    calls: dict[str, tuple[Any, ...]]

    def function(self, name: str) -> Callable[..., Any]:
        """Raises ``ImportError`` or ``AttributeError`` where the package has none."""
        target: Any = importlib.import_module(self.home)
        path = self.home
        for part in name.partition(" ")[0].split("."):
            path = f"{path}.{part}"
            if not hasattr(target, part):
                importlib.import_module(path)
            target = getattr(target, part)
        return target


__all__ = ["Cases"]
