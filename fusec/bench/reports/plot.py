"""The bench table as a figure: a line a program, its speed-up over eager NumPy at its sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .report import Report

FORMATS = (".svg", ".png", ".pdf")
COLOURS = {"f32": "#d95f02", "f64": "#1b6ca8"}
_SHORT = {"float32": "f32", "float64": "f64"}
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
# Text stays text, and the same figures make the same file.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "fusec", "font.family": "sans-serif"}


@dataclass(frozen=True)
class PlotPoint:
    """One row of the table: a program at a size (elements, rows, bodies or pixels) and dtype."""

    program: str
    size: float
    dtype: str
    speedup: float


def points_of(reports: Iterable[Report]) -> list[PlotPoint]:
    """The rows that were measured."""
    return [PlotPoint(r.program or r.name, r.size, _SHORT.get(r.dtype, r.dtype), r.speedup)
            for r in reports]


def points_of_page(text: str) -> list[PlotPoint]:
    """The rows of the first table with speed-ups in a page that ``--markdown`` wrote."""
    columns: list[str] = []
    points = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "speed-up" in cells and not columns:
            columns = cells
        elif columns and not line.startswith("|"):
            break
        elif columns and not cells[0].startswith("-"):
            row = dict(zip(columns, cells, strict=True))
            points.append(PlotPoint(row["program"], _number(row["size"]), row["dtype"],
                                    float(row["speed-up"].rstrip("x"))))
    return points


def _number(text: str) -> float:
    digits, suffix = re.fullmatch(r"([\d.]+)([kMG]?)", text).groups()  # type: ignore[union-attr]
    return float(digits) * _FACTORS[suffix]


def draw(points: Sequence[PlotPoint], path: str | Path) -> None:
    """Write the figure to ``path`` (format by its extension); raises ``ValueError`` if empty."""
    if not points:
        raise ValueError("there is nothing to plot; run at least one program")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = sorted({p.program for p in points}, key=lambda name: _best(points, name))
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 0.9 + 0.27 * len(names)), layout="constrained")
        FigureCanvasAgg(figure)
        panel = figure.subplots()
        for dtype in sorted({p.dtype for p in points}):
            _markers(panel, [p for p in points if p.dtype == dtype], names, dtype)
        _axes(panel, names)
        metadata = {"Date": None} if Path(path).suffix == ".svg" else None
        figure.savefig(path, dpi=130, metadata=metadata)


def _best(points: Iterable[PlotPoint], name: str) -> float:
    return max(p.speedup for p in points if p.program == name)


def _markers(panel: Any, points: Sequence[PlotPoint], names: Sequence[str], dtype: str) -> None:
    """A program's smallest size hollow, its others filled; the dtypes a little apart."""
    offset = 0.14 if dtype == "f32" else -0.14
    least = {name: min((p.size for p in points if p.program == name), default=0.0)
             for name in names}
    for is_least in (False, True):
        marked = [p for p in points if (p.size == least[p.program]) == is_least]
        colour = COLOURS.get(dtype, "0.3")
        panel.scatter(
            [p.speedup for p in marked], [names.index(p.program) + offset for p in marked], s=22,
            facecolors="white" if is_least else colour, edgecolors=colour, linewidths=1.2,
            zorder=3, label=f"{dtype}, {'smallest' if is_least else 'larger'} size")


def _axes(panel: Any, names: Sequence[str]) -> None:
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(_times)
    panel.axvline(1.0, color="0.4", linewidth=1.0, linestyle="--")
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("speed-up over eager NumPy")
    panel.grid(True, which="major", color="0.9")
    panel.set_axisbelow(True)
    panel.legend(loc="lower right", fontsize="small")


def _times(value: float, _position: int) -> str:
    return f"{value:g}x" if value >= 1 else f"1/{1 / value:g}x"
