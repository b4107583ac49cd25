"""Runs the Python blocks of a Markdown page in order and prints the output of each, as JSON.

    python docs_runner.py PAGE.md

A process of its own, so that a page starts as its reader does: no traces, no launches recorded.
Blocks share one namespace.  Each becomes a file in the current folder, named by its first line when
that is a comment like ``# wave.py``, because fusec shows source lines.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```([\w-]*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\w+\.py)\n")


def fences(text: str) -> list[tuple[str, str]]:
    """``(language, content)`` of every fenced block."""
    return FENCE.findall(text)


def run_block(code: str, number: int, namespace: dict[str, object]) -> str:
    """The block's output to stdout and stderr."""
    name = NAME.match(code)
    path = Path(name[1] if name else f"block_{number}.py")
    path.write_text(code, "utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        exec(compile(code, str(path), "exec"), namespace)
    return out.getvalue()


def main(page: str) -> None:
    namespace: dict[str, object] = {"__name__": "page"}
    blocks = [code for kind, code in fences(Path(page).read_text("utf-8")) if kind == "python"]
    outputs = [run_block(code, number, namespace) for number, code in enumerate(blocks)]
    json.dump(outputs, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
