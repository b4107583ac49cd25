"""Writes ``docs/programs.md``: the gain of each program of the corpus, or why it does not run.

``python -m tests.programs.report [--write docs/programs.md] [NAME ...]`` measures each program in a
process of its own.  A program that takes longer than `LIMIT` seconds counts as failed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .corpus import Program, programs
from .expected_failures import EXPECTED_FAILURES
from .slower import NOT_FOUND, SLOWER

LIMIT = 60
HEAD = (
    "program", "field", "lines", "n", "eager ms", "fusec ms", "speed-up", "kernels", "externs",
    "fallbacks", "loops native", "step by step", "retraces", "compile ms", "first call ms",
    "slower",
)
INTRODUCTION = """\
# The corpus of NumPy programs

Written by `python -m tests.programs.report --write docs/programs.md`; the programs are in
`tests/programs/`, a file per field, and each was committed before fusec first ran it.  Times are
the best of repeated calls on fresh arguments at the size n (objects keep their identity and get
fresh state), eager NumPy and fusec in one process;
"first call" includes tracing and compiling, "compile" is the stages' own time.  "Loops native" and
"step by step" count the branches and loops that data decides; "retraces" counts traces after the
first for calls of one signature.  "fallbacks" counts how often a compiled call runs Python code of
the program itself (watched with `sys.setprofile`); a program that does, be it for a loop body
inside a library call or as a whole, counts as failed.  Programs that are chaotic in their large
size (rk4_lorenz: a difference of one rounding grows by e^45) are compared there under
`fp="strict"`, which rounds as NumPy does; they are timed as compiled by default.
"""


def measured(program: Program) -> dict[str, Any]:
    """The row of one program, from a process of its own."""
    command = [sys.executable, "-m", "tests.programs.measure", program.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"name": program.name, "failure": f"longer than {LIMIT} s at the large size"}
    if done.returncode:
        words = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return {"name": program.name, "failure": words[0]}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    row["failure"] = row["failure"] or row["large_failure"]
    return row


def line(program: Program, row: dict[str, Any]) -> str:
    """A Markdown line of the table of programs that run."""
    gain = row["eager_ms"] / row["compiled_ms"]
    cells = (
        program.name, program.field.replace("_", " "), program.lines, program.large,
        f"{row['eager_ms']:.3g}", f"{row['compiled_ms']:.3g}", f"{gain:.2f}", row["kernels"],
        row["externs"], row["fallbacks"], row["native"], len(row["stepwise"]), row["traces"] - 1,
        f"{row['compile_ms']:.0f}", f"{row['first_ms']:.0f}", "slower" if gain < 1 else "",
    )
    return _cells(cells)


def page(rows: dict[str, dict[str, Any]], measured_how: str) -> str:
    """The whole document; programs of the corpus without a row are named as not measured."""
    known = {p.name: p for p in programs()}
    good = [(known[n], r) for n, r in rows.items() if not r["failure"]]
    bad = [(known[n], r) for n, r in rows.items() if r["failure"]]
    missing = [name for name in known if name not in rows]
    parts = [INTRODUCTION, measured_how, _headline(good, bad)]
    if missing:
        parts.append(f"Not measured in this run: {', '.join(missing)}.\n")
    parts += [_cells(HEAD), _cells(["---"] * len(HEAD))]
    parts += [line(p, r) for p, r in good]
    slower = [p.name for p, r in good if r["eager_ms"] < r["compiled_ms"]]
    return "\n".join([*parts, *_stepwise(good), *slower_table(slower), *_failures(bad), ""])


def _headline(good: list[Any], bad: list[Any]) -> str:
    gains = sorted(r["eager_ms"] / r["compiled_ms"] for _, r in good)
    slower = sum(g < 1 for g in gains)
    mean = math.exp(sum(map(math.log, gains)) / max(len(gains), 1))
    middle = gains[len(gains) // 2] if gains else 0.0
    return (f"{len(good)} of {len(good) + len(bad)} programs run as in NumPy, {len(bad)} do not.\n"
            f"Speed-up: geometric mean {mean:.2f}, median {middle:.2f}; slower than NumPy: "
            f"{slower}.\n")


def _stepwise(good: list[Any]) -> list[str]:
    reasons = Counter(reason for _, r in good for reason in set(r["stepwise"]))
    if not reasons:
        return []
    found = [_cells((n, reason)) for reason, n in reasons.most_common()]
    return ["\n## Why loops and branches run step by step\n",
            _cells(("programs", "reason")), _cells(("---", "---")), *found]


def slower_table(names: list[str]) -> list[str]:
    """Why these programs are slower than NumPy."""
    if not names:
        return []
    return ["\n## Why programs are slower than NumPy\n", _cells(("program", "reason")),
            _cells(("---", "---")), *(_cells((n, SLOWER.get(n, NOT_FOUND))) for n in names)]


def _failures(bad: list[Any]) -> list[str]:
    found = [_cells((p.name, p.field.replace("_", " "), _reason(p, r))) for p, r in bad]
    return ["\n## Programs that fail\n", _cells(("program", "field", "reason")),
            _cells(("---", "---", "---")), *found]


def _reason(program: Program, row: dict[str, Any]) -> str:
    first = row["failure"].splitlines()[0]
    return first if program.name in EXPECTED_FAILURES else f"**not expected**: {first}"


def _cells(cells: Any) -> str:
    return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"


def conditions(jobs: int) -> str:
    """Under which load the figures were taken: times of a busy machine say little by themselves."""
    load = os.getloadavg()[1]
    return (f"Measured {jobs} at a time on {os.cpu_count()} CPUs; load average at the end: "
            f"{load:.1f}.\nWhere that is above 1, other work disturbed the figures, the time limit "
            "and the speed-ups\ntoo: repeat them on a quiet machine before quoting any.\n")


def _announced(program: Program) -> dict[str, Any]:
    row = measured(program)
    print(program.name, row["failure"][:60], file=sys.stderr, flush=True)
    return row


def main() -> None:
    """Measure the named programs, or all, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the file to write instead of stdout")
    parser.add_argument("names", nargs="*", help="programs to measure (all)")
    parser.add_argument("--jobs", type=int, default=1, help="programs measured at a time (1)")
    options = parser.parse_args()
    chosen = [p for p in programs() if not options.names or p.name in options.names]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = {row["name"]: row for row in pool.map(_announced, chosen)}
    text = page(rows, conditions(options.jobs))
    if options.write:
        options.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
