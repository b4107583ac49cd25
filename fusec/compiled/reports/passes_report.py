"""The pass log as text: each pass with its time, its rewrites and changes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from fusec.ir.graph import Graph
from fusec.ir.text.compare import UNCHANGED, graph_diff


class PassRecord(Protocol):
    """The entry of a pass log for one pass; graphs print themselves with ``str()``."""

    @property
    def name(self) -> str: ...
    @property
    def ms(self) -> float: ...
    @property
    def rewrites(self) -> int: ...
    @property
    def before(self) -> Any: ...
    @property
    def after(self) -> Any: ...


def text_diff(before: Any, after: Any, context: int = 1) -> str:
    """The changed lines of two things' text; `UNCHANGED` when they are equal.

    Graphs are compared without their source locations; other things by ``str()``.
    """
    if before is after:
        return UNCHANGED
    if isinstance(before, Graph) and isinstance(after, Graph):
        return graph_diff(before, after, context)
    old, new = str(before).splitlines(), str(after).splitlines()
    diff = list(difflib.unified_diff(old, new, lineterm="", n=context))[2:]
    return "\n".join(diff) if diff else UNCHANGED


def headline(record: PassRecord) -> str:
    """``cse: 0.12 ms, 3 rewrites``, the line of the log's pass rung."""
    plural = "" if record.rewrites == 1 else "s"
    return f"{record.name}: {record.ms:.2f} ms, {record.rewrites} rewrite{plural}"


def pass_text(record: PassRecord) -> str:
    """The headline and the indented diff of one pass."""
    diff = text_diff(record.before, record.after)
    if diff == UNCHANGED:
        return f"{headline(record)} {UNCHANGED}"
    return "\n".join([headline(record), *(f"  {line}".rstrip() for line in diff.splitlines())])


def passes_text(records: Iterable[PassRecord]) -> str:
    """The whole log: a headline and a diff per pass, then the total time."""
    records = list(records)
    if not records:
        return "no pass ran"
    total = sum(record.ms for record in records)
    return "\n".join([*map(pass_text, records), f"total: {total:.2f} ms, {_changed(records)}"])


def _changed(records: Sequence[PassRecord]) -> str:
    active = sum(1 for r in records if text_diff(r.before, r.after) != UNCHANGED)
    return f"{active} of {len(records)} passes changed the graph"
