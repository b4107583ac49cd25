"""One place for the version: `fusec.__version__`; what cannot read it says the same."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import fusec
from fusec.core.versions import summary

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_version_is_a_literal_that_a_build_reads_without_an_import() -> None:
    assigned = [node.value for node in ast.parse(read("fusec/__init__.py")).body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"]
    assert [ast.literal_eval(value) for value in assigned] == [fusec.__version__]


def test_the_project_file_has_no_version_of_its_own() -> None:
    content = tomllib.loads(read("pyproject.toml"))
    assert "version" in content["project"]["dynamic"] and "version" not in content["project"]
    assert content["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "fusec.__version__"}


def test_the_citation_has_the_version() -> None:
    found = re.search(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    assert found and found[1] == fusec.__version__


def test_the_changelog_begins_with_the_version() -> None:
    """Entries go from the newest version to the oldest."""
    headings = re.findall(r"^## (\d[\d.]*) \(.+\)$", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == fusec.__version__
    assert headings == sorted(headings, key=lambda v: [*map(int, v.split("."))], reverse=True)


def test_reports_have_the_version_of_the_code_that_runs() -> None:
    """Not that of a distribution which an older checkout was installed as."""
    assert summary().startswith(f"fusec {fusec.__version__}, Python ")
