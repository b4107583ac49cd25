"""The terminal's table of reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..measuring.stats import count, digits, duration
from .report import PeerResult, Report

SHORT_DTYPE = {"float32": "f32", "float64": "f64"}


def thread_counts(reports: Iterable[Report]) -> list[int]:
    return sorted({n for report in reports for n in report.compiled})


def peer_names(reports: Iterable[Report]) -> list[str]:
    """Peers with a time in some report, in the order first met."""
    return list(dict.fromkeys(
        name for report in reports for name, peer in report.peers.items() if peer.timing))


def columns(reports: Sequence[Report]) -> list[str]:
    """Headings; the speed-up is of the column with the most threads."""
    timed = [f"{n} thread{'s' if n > 1 else ''}" for n in thread_counts(reports)]
    return ["program", "size", "dtype", "eager", *timed, "speed-up", "kernels", "externs",
            "% of limit", "compile ms", "break-even", "equal", *peer_names(reports)]


def cells(report: Report, counts: Sequence[int], peers: Sequence[str]) -> list[str]:
    """One row as text, in the order of :func:`columns`."""
    calls = report.break_even_calls
    return [
        report.program or report.name, count(report.size), SHORT_DTYPE.get(report.dtype, ""),
        duration(report.eager.seconds),
        *(duration(report.compiled[n].seconds) if n in report.compiled else "" for n in counts),
        f"{digits(report.speedup)}x", f"{report.kernels}", f"{len(report.externs)}",
        limit_cell(report), digits(report.total_compile_ms),
        "never" if calls == float("inf") else count(max(1.0, calls)), equal_cell(report),
        *(peer_cell(report.peers.get(name)) for name in peers),
    ]


def limit_cell(report: Report) -> str:
    """Per cent of the streaming limit at one thread and at all; bracketed beside library calls."""
    if not report.traffic:
        return "-"
    shares = [f"{100 * report.limit_seconds[n] / t.seconds:.0f}"
              for n, t in sorted(report.compiled.items())]
    text = " / ".join(shares)
    return f"({text})" if report.externs else text


def equal_cell(report: Report) -> str:
    """The largest error as a share of its bound, or that something is wrong."""
    if not report.equality.equal:
        return "NO"
    if not report.fused:
        return "yes, not fused"
    same = report.equality
    return "exact" if same.reference == "exact" else f"yes, {100 * same.margin:.0f} %"


def peer_cell(peer: PeerResult | None) -> str:
    return duration(peer.timing.seconds) if peer is not None and peer.timing else "-"


def rich_table(reports: Sequence[Report]) -> Any:
    """A ``rich`` table; rows slower than NumPy are yellow, wrong or unfused ones red."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for i, heading in enumerate(columns(reports)):
        table.add_column(heading, justify="left" if i == 0 else "right")
    counts, peers = thread_counts(reports), peer_names(reports)
    for report in reports:
        table.add_row(*cells(report, counts, peers), style=row_style(report))
    return table


def row_style(report: Report) -> str:
    if not report.equality.equal or not report.fused:
        return "red"
    return "yellow" if report.speedup < 1.0 else ""


def remarks(reports: Iterable[Report]) -> list[str]:
    """A sentence for each row that is wrong, not fused, or where fusec does not win."""
    lines = []
    for report in reports:
        where = f"{report.program or report.name} {count(report.size)} {report.dtype}".strip()
        if not report.equality.equal or report.speedup < 1.0 or not report.distinguishable:
            lines.append(f"{where}: {report.verdict}")
        if not report.fused:
            lines.append(f"{where}: nothing was fused ({report.operations} operations, "
                         f"{report.kernels} kernels, {len(report.externs)} library calls).")
    return lines


def markdown(reports: Sequence[Report]) -> str:
    """The same table in Markdown."""
    counts, peers = thread_counts(reports), peer_names(reports)
    heads = columns(reports)
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    rows += [cells(report, counts, peers) for report in reports]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def summary(reports: Sequence[Report]) -> str:
    """The whole run in two sentences."""
    good = sum(r.equality.equal and r.fused for r in reports)
    speeds = [r.speedup for r in reports if r.equality.equal]
    slower = sum(s < 1.0 for s in speeds)
    mean = digits(geometric_mean(speeds)) if speeds else "-"
    return (f"{good} of {len(reports)} rows equal and fused. Geometric mean of the speed-ups "
            f"{mean}x; NumPy is faster in {slower}.")


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(v) for v in values) / len(values))
