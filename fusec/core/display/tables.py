"""Rows as a table: as plain text, as HTML, or drawn by rich."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .notebook import Shown, preformatted, table

if TYPE_CHECKING:
    from rich.table import Table


class Column(NamedTuple):
    """A title, the text of a row's cell, and whether it is text, not figures."""

    title: str
    show: Callable[[Any], str]
    left: bool = False


class Tabular(Shown):
    """A mixin for reports of rows: ``str()`` is a plain table, ``rich.print`` draws one."""

    def columns(self) -> Sequence[Column]:
        raise NotImplementedError

    def shown_rows(self) -> Sequence[Any]:
        raise NotImplementedError

    title = ""
    empty = ""  # what stands there without rows

    def notes(self) -> list[str]:
        """Sentences below the table."""
        return []

    def _cells(self) -> list[list[str]]:
        columns = self.columns()
        return [[column.show(row) for column in columns] for row in self.shown_rows()]

    def __str__(self) -> str:
        cells = self._cells()
        lines = _plain(self.columns(), cells) if cells else [self.empty]
        return "\n".join([*lines, *self.notes()])

    def html(self) -> str:
        cells, columns = self._cells(), self.columns()
        if not cells:
            return preformatted(str(self))
        drawn = table([c.title for c in columns], cells, [c.left for c in columns])
        return drawn + "".join(f"<p>{note}</p>" for note in self.notes())

    def __rich__(self) -> Table:
        from rich.table import Table

        drawn = Table(title=self.title, caption="\n".join(self.notes()) or None)
        for column in self.columns():
            drawn.add_column(column.title, justify="left" if column.left else "right")
        for row in self._cells():
            drawn.add_row(*row)
        return drawn


def _plain(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, columns as wide as their longest cell."""
    cells = [[c.title for c in columns], *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column.left else cell.rjust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in cells
    ]
