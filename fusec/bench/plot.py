"""Speed-up over eager NumPy against size, one line a program, one panel a dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from .report import Report

MARKERS = "osD^vP*Xhpd<>"


def draw(reports: Sequence[Report], path: str | Path) -> None:
    """Write the figure to ``path`` (format by its extension); raises ``ValueError`` if empty."""
    if not reports:
        raise ValueError("there are no reports to plot; run at least one program")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dtypes = sorted({r.dtype for r in reports})
    names = list(dict.fromkeys(r.program or r.name for r in reports))
    figure = Figure(figsize=(5.4 * len(dtypes) + 2.2, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
    for panel, dtype in zip(panels, dtypes, strict=True):
        _panel(panel, [r for r in reports if r.dtype == dtype], names, dtype)
    panels[0].set_ylabel("speed-up over eager NumPy")
    handles = {line.get_label(): line for panel in panels for line in panel.get_lines()
               if not line.get_label().startswith("_")}
    figure.legend(list(handles.values()), list(handles), loc="outside right upper", frameon=False)
    threads = max(r.threads for r in reports)
    figure.suptitle(f"fusec against eager NumPy, {threads} thread{'s' if threads > 1 else ''}")
    figure.savefig(path, dpi=130)


def _panel(panel: Any, reports: Sequence[Report], names: Sequence[str], dtype: str) -> None:
    def name_of(report: Report) -> str:
        return report.program or report.name

    for name, group in groupby(sorted(reports, key=name_of), key=name_of):
        _line(panel, sorted(group, key=lambda r: r.size), name, names.index(name))
    panel.axhline(1.0, color="0.4", linewidth=1.0, linestyle="--")
    panel.set_xscale("log")
    panel.set_yscale("log", base=2)
    panel.yaxis.set_major_formatter(_times)
    panel.set_title(dtype, fontsize="medium")
    panel.set_xlabel("size (elements, rows, bodies or pixels)")
    panel.grid(True, which="major", color="0.9")
    panel.set_axisbelow(True)


def _line(panel: Any, reports: Sequence[Report], name: str, index: int) -> None:
    """One program, with the confidence interval of the speed-up as a thin bar."""
    speed = [r.speedup for r in reports]
    low = [r.speedup - r.eager.low / r.best.high for r in reports]
    high = [r.eager.high / r.best.low - r.speedup for r in reports]
    colour = f"C{index}" if index < 10 else ("black", "gold", "navy")[index % 3]
    panel.errorbar(
        [max(1, r.size) for r in reports], speed,
        yerr=[[max(0.0, v) for v in low], [max(0.0, v) for v in high]], color=colour,
        marker=MARKERS[index % len(MARKERS)], markersize=5, linewidth=1.4, elinewidth=0.7,
        capsize=0, label="_nolegend_")
    panel.plot([], [], color=colour, marker=MARKERS[index % len(MARKERS)], linewidth=1.4,
               markersize=5, label=name)


def _times(value: float, _position: int) -> str:
    if value <= 0 or not math.isfinite(value):
        return ""
    return f"{value:g}x" if value >= 1 else f"1/{1 / value:g}x"
