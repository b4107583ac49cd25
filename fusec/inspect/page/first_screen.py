"""The first screen of a page as HTML without scripts: for notebooks, and where none may run."""

from __future__ import annotations

from typing import Any

from fusec.core.display.amounts import bytes_text, count_text
from fusec.core.display.notebook import escape, folded, headline, table
from fusec.core.locations import places_text

Json = dict[str, Any]
MOST_ROWS, MOST_LINES = 30, 6
MOST_TEXT, MOST_SIGNATURE = 60_000, 2_000  # letters of the report and the signature


def first_screen(sections: Json, has_report: bool = True) -> str:
    """The newest trace: its signature, its kernels, what was not fused, and its report."""
    head = sections["head"]
    if not head["traces"]:
        return headline(f"{head['function']}: nothing is compiled yet")
    number = len(head["traces"]) - 1
    trace, kernels = head["traces"][number], sections[f"kernels/{number}"]
    counts = f"{count_text(trace['kernels'], 'kernel')}, " \
             f"{count_text(trace['externs'], 'library call')}"
    if trace["control"]:
        counts += f", {count_text(trace['control'], 'branch or loop', 'branches and loops')}"
    parts = [headline(f"{head['function']}: {counts}"),
             f"<p>{escape(_clipped(trace['signature']))}</p>" if trace["signature"] else "",
             _kernels(kernels, sections[f"sources/{number}"]), _not_fused(kernels)]
    if has_report:
        parts.append(_report(sections[f"report/{number}"]["text"]))
    return "".join(parts)


def _clipped(signature: str) -> str:
    """Texts among the arguments are part of it, however long they are."""
    return signature if len(signature) <= MOST_SIGNATURE else signature[:MOST_SIGNATURE] + " …"


def _report(text: str) -> str:
    if len(text) > MOST_TEXT:
        text = text[:MOST_TEXT].rpartition("\n")[0] + "\n… the rest is on the page of save_html"
    return folded("the report", text)


def _kernels(part: Json, sources: Json) -> str:
    rows = [[k["name"], _lines(k["lines"], sources), str(k["ops"]), _amount(k["loaded"]),
             _amount(k["stored"])] for k in part["kernels"][:MOST_ROWS]]
    if not rows:
        return ""
    more = len(part["kernels"]) - len(rows)
    return table(["kernel", "lines", "operations", "in", "out"], rows,
                 [True, True, False, False, False]) + (f"<p>and {more} more</p>" if more else "")


def _lines(numbers: list[int], sources: Json) -> str:
    places = {tuple(sources["locs"][number][:2]) for number in numbers if number >= 0}
    found = [(sources["files"][file]["name"].rpartition("/")[2], line)
             for file, line in sorted(places)]
    return places_text(found[:MOST_LINES]) + (" …" if len(found) > MOST_LINES else "")


def _amount(size: int | None) -> str:
    return "" if size is None else bytes_text(size)


def _not_fused(part: Json) -> str:
    reasons = [text for kernel in part["kernels"] for text in kernel["boundaries"]]
    items = "".join(f"<li>{escape(text)}</li>" for text in reasons[:MOST_ROWS])
    return f"<p>not fused</p><ul>{items}</ul>" if items else ""
