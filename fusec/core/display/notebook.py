"""How reports look in a notebook: HTML beside the text, with no need of IPython itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_CELL = "text-align:{};padding:2px 8px"


class Shown:
    """A mixin: `str` as text, ``html()`` where the front end draws HTML."""

    def html(self) -> str:
        """The report as HTML, by itself (no style sheet, no script)."""
        return preformatted(str(self))

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.html()}


def escape(text: str) -> str:
    return text.translate(_ESCAPED)


def preformatted(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def headline(text: str) -> str:
    return f"<p><b>{escape(text)}</b></p>"


def folded(title: str, text: str, is_open: bool = False) -> str:
    """A part of a report that is shown by a click on its title."""
    return (f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>"
            f"{preformatted(text)}</details>")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool]) -> str:
    """A table; ``left`` says of each column whether it is text, not figures."""
    sides = [_CELL.format("left" if is_left else "right") for is_left in left]
    return f"<table><thead>{_row('th', titles, sides)}</thead><tbody>" + "".join(
        _row("td", row, sides) for row in rows) + "</tbody></table>"


def _row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    return "<tr>" + "".join(
        f'<{tag} style="{style}">{escape(cell)}</{tag}>'
        for cell, style in zip(cells, styles, strict=True)) + "</tr>"
