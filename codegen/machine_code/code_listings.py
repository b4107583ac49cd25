"""Texts of a kernel's code whose lines are linked with the lines of its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fusec.core.records import dataclass

from ..kernels.loop_ir import Expr, Kernel, kernel_lines

Rows = list[list[int]]  # for each line of a text the lines of the loops that it is of
Notes = Iterable[tuple[int, int, Any]]  # lines from and to, and what they are of; inner ones first


@dataclass
class Listing:
    """A text of a kernel with its links; ``unlinked``: why it has none, or ""."""

    text: str
    rows: Rows
    unlinked: str = ""


def lines_of_expressions(kernel: Kernel) -> list[dict[Expr, list[int]]]:
    """For each nest, and each expression of it, the lines of the loops that compute, store or join
    it."""
    found: list[dict[Expr, list[int]]] = [{} for _ in kernel.nests]
    nest = -1
    for number, (text, e) in enumerate(kernel_lines(kernel)):
        if text.startswith("  nest "):
            nest += 1
        elif e is not None:
            found[nest].setdefault(e, []).append(number)
    return found


class ProgramRows:
    """The lines of the text of a branch or loop: those of its statements, and those of the loops of
    the kernels that it runs."""

    def __init__(self) -> None:
        self._statements: dict[int, list[int]] = {}
        self._nests: dict[int, list[dict[Expr, list[int]]]] = {}

    def add(self, statement: Any, line: int) -> None:
        """The line is of this statement, too."""
        self._statements.setdefault(id(statement), []).append(line)

    def add_kernel(self, step: Any, line: int) -> None:
        """The text of the kernel that a statement runs begins at this line."""
        self._nests[id(step)] = [
            {e: [line + n for n in own] for e, own in of.items()}
            for of in lines_of_expressions(step.kernel)]

    def of(self, statement: Any) -> list[int]:
        """The lines of a statement."""
        return self._statements.get(id(statement), [])

    def nests(self, step: Any) -> Sequence[dict[Expr, list[int]]]:
        """For each nest of the kernel that a statement runs the lines of each expression."""
        return self._nests.get(id(step), [])

    def of_expression(self, step: Any, e: Expr) -> list[int]:
        """The lines of an expression of any of its nests."""
        return [line for of in self.nests(step) for line in of.get(e, ())]


def note_lines(
    found: dict[int, list[int]], start: int, notes: Notes, rows_of: Callable[[Any], list[int]]
) -> None:
    """Adds what lines are of; those of the notes are counted from ``start``."""
    for low, high, source in notes:
        for line in range(start + low, start + high):
            found.setdefault(line, rows_of(source))


def joined(first: Listing, second: Listing) -> Listing:
    """One text after another."""
    missing = first.text.count("\n") + 1 - len(first.rows)
    return Listing(f"{first.text}\n{second.text}",
                   [*first.rows, *([] for _ in range(missing)), *second.rows],
                   first.unlinked or second.unlinked)
