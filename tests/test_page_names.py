"""What pages name is there: links and their anchors, files and folders, modules, make's targets."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(str(page.relative_to(ROOT))
               for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
# Pages shorten paths: they begin at the checkout, at `fusec`, or at `fusec/trace`.
BASES = ("", "fusec", "fusec/trace")
SOURCES = ("fusec", "passes", "codegen", "runtime", "tests", "examples", ".ci")
NOTES_LINES = 400

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)+)/?`")
FILE = re.compile(r"`(\w[\w-]*\.(?:py|md|cuh|cpp|h|toml|cff))`")
MODULE = re.compile(r"python -m ((?:fusec|tests)\b[\w.]*\w)")
TARGET = re.compile(r"`make ([\w-]+)|^make ([\w-]+)", re.MULTILINE)
NO_PATHS = {"1/x", "DIR/standardise-000"}


def prose(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text("utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def file_names() -> set[str]:
    return {path.name for folder in (*SOURCES, "docs") for path in (ROOT / folder).rglob("*.*")}


def leads_somewhere(page: Path, target: str, anchor: str) -> bool:
    file = page.parent / target if target else page
    return file.exists() and (not anchor or anchor in anchors(file))


def is_path(name: str) -> bool:
    return any((ROOT / base / name).exists() for base in BASES)


def is_module(name: str) -> bool:
    parts = name.split(".")
    below = [ROOT.joinpath(*parts), ROOT.joinpath(*parts[1:])]  # `fusec.passes` is `passes`
    return any(path.with_suffix(".py").exists() or (path / "__main__.py").exists()
               for path in below)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = LINK.findall(prose(page))
    assert not [link for link in links if not leads_somewhere(ROOT / page, *link)]


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_are_there(page: str) -> None:
    text = prose(page)
    assert not {name for name in PATH.findall(text) if not is_path(name)} - NO_PATHS
    here = file_names() | {path.name for path in ROOT.iterdir()}
    assert not set(FILE.findall(text)) - here


@pytest.mark.parametrize("page", [*PAGES, "Makefile"])
def test_commands_are_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert not {name for name in MODULE.findall(text) if not is_module(name)}
    rules = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    assert not {a or b for a, b in TARGET.findall(text) if page != "Makefile"} - targets


def test_pages_that_sources_name_are_there() -> None:
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in files
             for name in re.findall(r"\bdocs/[\w/-]+\.(?:md|svg)", path.read_text("utf-8"))}
    assert named and not {name for name in named if not (ROOT / name).exists()}


def test_design_notes_lie_by_rooms() -> None:
    """Each file of them is in the index, and short enough to be read."""
    files = sorted((ROOT / "docs" / "design-notes").iterdir())
    index = {target for target, _ in LINK.findall(prose("docs/design-notes.md"))}
    assert {f"design-notes/{file.name}" for file in files} <= index
    lengths = {file.name: len(file.read_text("utf-8").splitlines()) for file in files}
    assert not {name for name, lines in lengths.items() if lines > NOTES_LINES}
