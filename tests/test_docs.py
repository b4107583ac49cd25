"""The README and the tutorial tell the truth: their code runs and has the output that they show.

A ``text`` block is the output of the ``python`` block before it.  In it ``…`` stands for any text
in a line, a line of ``…`` alone for any lines, and measured figures (times, rates, errors, counts
of threads) may differ.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs_runner import fences

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/tutorial.md", "docs/reading-a-dump.md", "docs/graphs.md",
         "docs/export.md", "docs/export-c.md", "docs/export-cuda.md", "docs/variables.md",
         "docs/rfc.md", "docs/devices.md", "docs/training.md", "docs/debugging.md", "docs/vmap.md",
         "docs/distributed.md", "docs/other-arrays.md", "docs/workers.md", "docs/xarray.md")
NEEDED = {"docs/distributed.md": "distributed", "docs/xarray.md": "xarray"}  # libraries, by page
SILENT = ("docs/gradients.md", "docs/viewer.md")  # their code prints nothing
README_LINES = 220

MEASURED = re.compile(
    r"\d[\d.,]*(?:e[+-]?\d+)?\s?(?:(?:ns|ms|µs|us|s|GB/s|ulp|%|calls?|threads?)\b|%|x as\b)"
    r"|(?<=trace )\d[\d.]*|(?<=passes )\d[\d.]*|(?<=codegen )\d[\d.]*|(?<=llvm )\d[\d.]*"
    r"|(?<=plan )\d[\d.]*"
    r"|0x[0-9a-f]+"
)
# A report's verdict, break-even and peaks are measured as a whole; that they are there is checked.
MEASURED_PARTS = (
    (re.compile(r"^(?:fusec|NumPy) is .* as fast as .*|^No measurable difference.*"), "verdict"),
    (re.compile(r"never pays|pays after \S+ calls"), "pays"),
    (re.compile(r"(?<=peak memory: ).*"), "peaks"),
)


# Remarks of a report on what else this machine does.
DISTURBED = re.compile(r"  note: (the machine is loaded|the host gave|the control group's CPU"
                       r"|the processor was too hot|NumPy's BLAS has)")


def shown_and_written(page: str, cwd: Path) -> list[tuple[str, str]]:
    """Every ``text`` block with the output in its place."""
    path = ROOT / page
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "docs_runner.py"), str(path)],
        cwd=cwd, env=_default_settings(), capture_output=True, text=True, encoding="utf-8",
        timeout=300, check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs = iter(json.loads(done.stdout))
    pairs, last = [], None
    for kind, content in fences(path.read_text("utf-8")):
        if kind == "python":
            last = next(outputs)
        elif kind == "text":
            assert last is not None, f"{page}: a text block without a python block before it"
            pairs.append((content, last))
            last = None
    return pairs


def _default_settings() -> dict[str, str]:
    """The environment without fusec's variables, but for the tests' own disk cache."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith("FUSEC_") or k == "FUSEC_CACHE_DIR"} | {"FUSEC_PROGRESS": "0"}


def lines_of(text: str) -> list[str]:
    """The lines without trailing space, measured figures replaced by their names or ``#``."""
    return [_unmeasured(line.rstrip()) for line in text.strip("\n").split("\n")
            if not DISTURBED.match(line)]


def _unmeasured(line: str) -> str:
    for part, name in MEASURED_PARTS:
        line = part.sub(name, line)
    return MEASURED.sub("#", line)


def pattern_of(shown: str) -> str:
    """The regular expression that a ``text`` block stands for."""
    parts = []
    for line in lines_of(shown):
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.split("…"))) + r"\n")
    return "".join(parts)


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_what_their_code_writes(page: str, tmp_path: Path) -> None:
    if page in NEEDED:
        pytest.importorskip(NEEDED[page])
    pairs = shown_and_written(page, tmp_path)
    assert pairs
    for shown, written in pairs:
        text = "\n".join(lines_of(written)) + "\n"
        assert re.fullmatch(pattern_of(shown), text), (
            f"{page} shows\n{shown}\nbut its code writes\n{written}")


@pytest.mark.parametrize("page", SILENT)
def test_code_that_prints_nothing_runs(page: str, tmp_path: Path) -> None:
    assert shown_and_written(page, tmp_path) == []


def test_the_code_of_every_page_is_run() -> None:
    pages = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    assert {*PAGES, *SILENT} == {
        str(page.relative_to(ROOT)) for page in pages
        if any(kind == "python" for kind, _ in fences(page.read_text("utf-8")))}


def test_the_readme_counts_packages_as_their_page_does() -> None:
    readme, page = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/packages.md"))
    functions, _packages, *counts = re.findall(r"\d+", readme.partition("\nOf ")[2])[:6]
    total = next(line for line in page.splitlines() if line.startswith("| **all**"))
    assert [functions, *counts] == re.findall(r"\d+", total)[:5]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES


def test_measured_figures_may_differ_and_others_may_not() -> None:
    written = "\n".join(lines_of("No measurable difference\nin 1.5 s\na\nb\nend of it")) + "\n"
    shown = "fusec is 7.90x as fast as NumPy: 9 ms -> 1 ms.\nin 12 ms\n…\nend …"
    assert re.fullmatch(pattern_of(shown), written)
    assert not re.fullmatch(pattern_of(shown.replace("end", "start")), written)
    assert not re.fullmatch(pattern_of("3 kernels"), "2 kernels\n")
