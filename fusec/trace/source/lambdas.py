"""The lambdas of a text by line.

One that lies inside of a statement of many lines, such as a table of them, is found in the tree of
the whole text.  The tree of the text that was asked for last is read once for all of its lambdas.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from fusec.core.records import dataclass

Parse = Callable[[list[str]], ast.Module | None]


def lambdas_in(tree: ast.AST) -> list[ast.Lambda]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]


@dataclass(slots=True)
class Lambdas:
    """``by_line``: where they start.  Who asks gets copies, which may be rewritten."""

    lines: list[str]
    by_line: dict[int, list[ast.Lambda]]

    def starting_at(self, line: int) -> list[ast.Lambda]:
        return copy.deepcopy(self.by_line.get(line, []))

    def all(self) -> Iterator[ast.Lambda]:
        for nodes in self.by_line.values():
            yield from copy.deepcopy(nodes)


_latest = Lambdas([], {})


def lambdas_of_text(lines: list[str], parse: Parse) -> Lambdas:
    """Those of a text, none where it does not parse.

    Texts are told apart by identity: `linecache` makes a new list of a file that has changed.
    """
    global _latest
    latest = _latest  # another thread may exchange it
    if latest.lines is not lines:
        latest = Lambdas(lines, {})
        for node in lambdas_in(parse(lines) or ast.Module([], [])):
            latest.by_line.setdefault(node.lineno, []).append(node)
        _latest = latest
    return latest
