"""`Viewed`: what can be saved as a page, functions and stages alike.

The page is made by `fusec.inspect.page`, which reads the stages and so stands above them: it is
asked for when somebody looks, as `fusec.ir.graph` asks for those that write graphs.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any


def page_module() -> Any:
    """The module that makes pages; imported when the first one is made."""
    return _module("inspect.page.views")


def _module(name: str) -> Any:
    """A module that imports this one."""
    return importlib.import_module(f"fusec.{name}")


class Viewed:
    """A mixin: one HTML file that shows every decision, and its first screen in notebooks."""

    __slots__ = ()

    def save_html(self, path: str | os.PathLike[str]) -> Path:
        """Write a page about it to ``path`` and return that: one file, which needs no server and no
        network.  It holds the lines of the program that it names.

        Raises ``OSError`` where it cannot be written.
        """
        target: Path = page_module().save_stage(self, path)
        return target

    def _repr_html_(self) -> str:
        text: str = page_module().first_screen_of(self)
        return text
