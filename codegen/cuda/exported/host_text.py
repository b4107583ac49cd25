"""The C++ of a function of the host's as it grows: numbers are named once, branches are nested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .host_numbers import Branch, HostExpr, plain
from .size_numbers import operation

_SIGNS = {"<": "<", "==": "=="}


class HostText:
    """Lines of a function's body, and the names of numbers that they have computed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self._names: dict[Any, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head { … }``; numbers that are computed inside have no names behind it."""
        names = dict(self._names)
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self._names = names
            self.line("}")

    def number(self, x: Any) -> str:
        """A number as a name or a literal."""
        return self._named(plain(x))

    def fresh(self, stem: str) -> str:
        """A name that the function has not."""
        self._count += 1
        return f"{stem}{self._count}_"

    def _named(self, x: Any) -> str:
        if not isinstance(x, HostExpr):
            return str(x) if -(1 << 31) < x < 1 << 31 else f"{x}LL"
        if x.op == "text" and str(x.args[0]).isidentifier():
            return str(x.args[0])
        if x not in self._names:
            text = str(x.args[0]) if x.op == "text" else operation(
                x.op, [_wide(self._named(arg)) for arg in x.args])
            name = self.fresh("n")
            self.line(f"const int64_t {name} = {text};")
            self._names[x] = name
        return self._names[x]

    def branches(self, tree: Any, leaf: Callable[[Any], None]) -> None:
        """Print the tree of `explored`; ``leaf`` prints a result where it holds."""
        if not isinstance(tree, Branch):
            leaf(tree)
            return
        a, b = map(self._named, tree.condition)
        with self.block(f"if ({a} {_SIGNS[tree.op]} {b})"):
            self.branches(tree.yes, leaf)
        with self.block("else"):
            self.branches(tree.no, leaf)


def _wide(text: str) -> str:
    """A literal as a number of 64 bits, so that no product is of 32."""
    return f"int64_t({text})" if text.lstrip("-").isdigit() else text
