"""Checks of a page's data against the text of `fusec.explain`."""

from __future__ import annotations

import re
from typing import Any

from fusec.core.display.amounts import bytes_text


def says_what_explain_says(sections: Any, at: int, report: str) -> None:
    """The numbered trace of a page has what the report has, line by line."""
    shown, kernels = sections["head"]["traces"][at], sections[f"kernels/{at}"]
    part = sections[f"report/{at}"]
    first = report.partition("\n")[0]
    assert re.search(rf"\b{shown['kernels']} kernels?, {shown['externs']} library call", first)
    assert shown["signature"] in report and f"\n  {shown['reason']}\n" in report
    for each in sections[f"passes/{at}"]["passes"]:
        assert f"  {each['name']}: {each['ms']:.2f} ms, {each['rewrites']} rewrite" in report
    for kernel in kernels["kernels"]:
        assert f"  {kernel['name']}: {kernel['ops']} operation" in report
        amounts = [kernel["loaded"], kernel["stored"]]
        if None not in amounts:
            assert "{} in, {} out".format(*map(bytes_text, amounts)) in report
        for reason in kernel["boundaries"]:
            assert f"\n  {reason}\n" in report
    for extern in kernels["externs"]:
        assert re.search(rf"  {re.escape(extern['name'])}.*: {re.escape(extern['reason'])}", report)
    for step in kernels["control"]:
        assert re.search(rf"  {re.escape(step['name'])}.*: {re.escape(step['reason'])}", report)
    for words in part.get("variables", ()):
        assert re.search(r"\n  " + r" +".join(map(re.escape, words)), report)
    for found in part["broadcasts"]:
        assert f"\n  {found['text']}" in report
    assert part["text"].count("\n") == report.count("\n")
