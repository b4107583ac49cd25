"""Python text of a function, as the printers of plans write it: lines, and objects by name."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

_INDENT = "    "


class TextWriter:
    """The lines of one function's body, and the ``names`` of objects in them."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names: dict[str, Any] = dict(names)
        self.lines: list[str] = []
        # Lines from and to, and the statement that they are of; None where nobody asks.
        self.notes: list[tuple[int, int, Any]] | None = None
        self._indent = ""

    # -- lines

    def line(self, *texts: str) -> None:
        self.lines += [self._indent + text for text in texts]

    def note(self, start: int, source: Any) -> None:
        """The lines from ``start`` on are of this statement."""
        if self.notes is not None:
            self.notes.append((start, len(self.lines), source))

    @contextmanager
    def inside(self, head: str) -> Iterator[None]:
        """Around the lines of a block."""
        self.line(head)
        before, self._indent = self._indent, self._indent + _INDENT
        count = len(self.lines)
        yield
        if len(self.lines) == count:
            self.line("pass")
        self._indent = before

    # -- names

    def new_name(self, stem: str) -> str:
        return f"{stem}_{len(self.names)}"

    def bind(self, stem: str, value: Any) -> str:
        """A new name for an object."""
        return self.once(self.new_name(stem), value)

    def once(self, name: str, value: Any) -> str:
        """That name for the object that it is first given."""
        self.names.setdefault(name, value)
        return name

    # -- the function

    def source_text(self, head: str) -> str:
        """The whole function; ``head`` is its first line."""
        return "\n".join([head, *indented(self.lines or ["pass"]), ""])

    def compiled(self, head: str, title: str) -> Callable[..., Any]:
        """The function, compiled; ``title`` stands for a file's name in tracebacks."""
        self.names.setdefault("__builtins__", builtins)  # for what C code imports on its behalf
        return FunctionType(code_of(self.source_text(head), title), self.names)


def indented(lines: Sequence[str]) -> list[str]:
    return [_INDENT + line for line in lines]


@functools.lru_cache(128)
def code_of(text: str, title: str) -> CodeType:
    """The code of the function that the text is of: plans that are made again have the same text.
    """
    module = compile(text, title, "exec")
    return next(code for code in module.co_consts if type(code) is CodeType)


__all__ = ["TextWriter", "code_of", "indented"]
