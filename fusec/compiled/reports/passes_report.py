"""The pass log as text: each pass with its time, its rewrites and changes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from fusec.ir.graph import Graph
from fusec.ir.text.compare import UNCHANGED, graph_diff


class PassRun(Protocol):
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
    @property
    def inner(self) -> Sequence[BodyInfo]: ...
    @property
    def rules(self) -> Mapping[str, Sequence[str]]: ...


class BodyInfo(Protocol):
    """The passes of a sub-graph of a branch or loop."""

    @property
    def body(self) -> str: ...
    @property
    def records(self) -> Sequence[PassRun]: ...


def body_text(part: BodyInfo) -> str:
    """``body: simplify (2), fusion (3)``: the passes, with what each rewrote."""
    named = (f"{r.name} ({r.rewrites})" if r.rewrites else r.name for r in part.records)
    return f"{part.body}: {', '.join(named)}"


def _active(part: BodyInfo) -> str:
    """The same of those passes that rewrote anything, or nothing."""
    named = [f"{r.name} ({r.rewrites})" for r in part.records if r.rewrites]
    return f"  in {part.body}: {', '.join(named)}" if named else ""


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


def headline(record: PassRun) -> str:
    """``cse: 0.12 ms, 3 rewrites``, the line of the log's pass rung."""
    plural = "" if record.rewrites == 1 else "s"
    return f"{record.name}: {record.ms:.2f} ms, {record.rewrites} rewrite{plural}"


def pass_text(record: PassRun) -> str:
    """The headline and the indented diff of one pass, and what it did to sub-graphs."""
    inner, diff = [*filter(None, map(_active, record.inner))], text_diff(
        record.before, record.after)
    if diff != UNCHANGED:
        return "\n".join([
            headline(record), *(f"  {line}".rstrip() for line in diff.splitlines()), *inner])
    return "\n".join([headline(record), *inner]) if inner else f"{headline(record)} {UNCHANGED}"


def passes_text(records: Iterable[PassRun]) -> str:
    """The whole log: a headline and a diff per pass, then the total time."""
    records = list(records)
    if not records:
        return "no pass ran"
    total = sum(record.ms for record in records)
    return "\n".join([*map(pass_text, records), f"total: {total:.2f} ms, {_changed(records)}"])


def _changed(records: Sequence[PassRun]) -> str:
    active = sum(1 for r in records if text_diff(r.before, r.after) != UNCHANGED)
    return f"{active} of {len(records)} passes changed the graph"
