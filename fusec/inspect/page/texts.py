"""Texts of graphs for a page: each line once, and a graph as edits of the one before it."""

from __future__ import annotations

import difflib
import linecache
from typing import Any

from fusec.core.locations import titled
from fusec.ir import Graph, Loc
from fusec.ir.text.text import graph_lines, print_loc

MOST_LINES = 60_000  # of one graph whose text a page has
MOST_SOURCE = 1_500  # lines of a file of the program; of longer ones those around what is used
AROUND = 30
UNKNOWN = "(the text is not known)"  # of a line
_DIFF_LINES = 6_000  # of the changed part of a graph, up to which edits are looked for in it


class Sources:
    """The lines of the program that a page names, each place by a number."""

    def __init__(self) -> None:
        self.locs: list[list[Any]] = []
        self._numbers: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def number(self, loc: Loc | None) -> int:
        """The number of a place; -1 for none."""
        if loc is None:
            return -1
        text = print_loc(loc)
        if text not in self._numbers:
            file = self._files.setdefault(loc.file, len(self._files))
            self._numbers[text] = len(self.locs)
            self.locs.append([file, loc.line, loc.col, loc.end_col, loc.function])
        return self._numbers[text]

    def note(self, graph: Graph) -> None:
        """Number the places of a graph, and of those in it."""
        for node in graph.nodes:
            self.number(node.loc)
            for inner in node.graphs:
                self.note(inner)

    def by_text(self, text: str) -> int:
        """The number of a place as graphs print it; -1 for other texts."""
        return self._numbers.get(text, -1)

    def data(self) -> dict[str, Any]:
        """Places as (file, line, column, end, function), and the files' lines."""
        return {"locs": self.locs,
                "files": [self._file(name, number) for name, number in self._files.items()]}

    def _file(self, name: str, number: int) -> dict[str, Any]:
        lines = [line.rstrip("\n") for line in linecache.getlines(name)]
        used = [loc[1] for loc in self.locs if loc[0] == number]
        first = 1
        if not lines and used:  # of ``exec`` and of programs that Python reads from a pipe
            first = min(used)
            lines = [UNKNOWN if line in used else ""
                     for line in range(first, min(max(used) + 1, first + MOST_SOURCE))]
        if len(lines) > MOST_SOURCE:
            first = max(1, min(used) - AROUND)
            lines = lines[first - 1:min(max(used) + AROUND, first + MOST_SOURCE)]
        return {"name": titled(name), "first": first, "lines": lines}


class GraphTexts:
    """Graphs by number, in the order in which they were first asked for."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lines: dict[str, int] = {}
        self._locs: list[int] = []
        self._graphs: list[dict[str, Any]] = []
        self._known: dict[int, tuple[Graph, int]] = {}
        self._last: list[int] = []

    def number(self, graph: Graph) -> int:
        """The number of a graph, whose text is kept."""
        known = self._known.get(id(graph))
        if known is None:
            known = self._known[id(graph)] = graph, len(self._graphs)
            self._graphs.append(self._added(graph))
        return known[1]

    def _added(self, graph: Graph) -> dict[str, Any]:
        bare = graph_lines(graph, locs=False)
        head = {"name": graph.name, "count": len(bare), "nodes": len(graph.nodes)}
        if len(bare) > MOST_LINES:
            return {**head, "left_out": True}
        self._sources.note(graph)
        lines = [self._line(text, full)
                 for text, full in zip(bare, graph_lines(graph), strict=True)]
        before, self._last = self._last, lines
        return {**head, "edits": _edits(before, lines)}

    def _line(self, text: str, full: str) -> int:
        """The number of a line; where it is of the program is what the full one has more."""
        number = self._lines.get(text)
        if number is None:
            number = self._lines[text] = len(self._lines)
            self._locs.append(self._place(full[len(text):].strip().removeprefix("# ")))
        return number

    def _place(self, text: str) -> int:
        return self._sources.by_text(text) if text else -1

    def data(self) -> dict[str, Any]:
        """``graphs``: each as edits ``[from, to, lines]`` of the one before; ``lines``: the texts;
        ``at``: the place of each."""
        return {"graphs": self._graphs, "lines": list(self._lines), "at": self._locs}


def _edits(before: list[int], after: list[int]) -> list[list[Any]]:
    start, most = 0, min(len(before), len(after))
    while start < most and before[start] == after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start:len(before) - end], after[start:len(after) - end]
    if max(len(old), len(new)) > _DIFF_LINES:
        return [[start, start + len(old), new]]
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [[start + i1, start + i2, new[j1:j2]] for tag, i1, i2, j1, j2 in codes
            if tag != "equal"]
