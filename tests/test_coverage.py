"""The coverage page: current, honest, and not shrinking."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from fusec.inspect import coverage
from fusec.inspect.array_api import ARRAY_API
from fusec.inspect.coverage_reasons import PLAIN, REFUSED
from fusec.inspect.coverage_samples import SAMPLES

PAGE = Path(__file__).parents[1] / "docs" / "numpy-coverage.md"


def statuses(page: str) -> dict[str, str]:
    """The status of each function on a page."""
    return {f"{section}.{name}": status
            for section, text in re.findall(r"^#+ (.*?)$(.*?)(?=^#|\Z)", page, re.M | re.S)
            for status, names in re.findall(r"^- \*\*(.*?)\*\*[^:]*: (.*)$", text, re.M)
            for name in re.findall(r"`([\w.]+)`", names)}


def test_the_committed_page_is_current() -> None:
    """Under the NumPy that it names; under another, for the functions that both have."""
    committed, now = PAGE.read_text(encoding="utf-8"), coverage.page()
    if f"NumPy {np.__version__} by" in committed:
        assert committed == now, (
            "run python -m fusec.inspect.coverage --write docs/numpy-coverage.md")
    before, after = statuses(committed), statuses(now)
    both = before.keys() & after.keys()
    assert len(both) > 400
    assert {k: after[k] for k in both} == {k: before[k] for k in both}


def test_coverage_does_not_shrink() -> None:
    found = coverage.entries()
    main = [e for e in found if "." not in e.name]
    standard = [e for part in coverage.array_api_entries().values() for e in part]
    assert coverage.percentage(main) >= 87
    assert coverage.percentage(standard) >= 90


def test_every_refusal_says_why() -> None:
    bare = [e.name for e in coverage.entries() if e.status != coverage.FUSED
            and e.status != coverage.LIBRARY and not e.reason]
    assert bare == []


@pytest.mark.parametrize("table", [PLAIN, REFUSED, SAMPLES])
def test_tables_name_functions_that_numpy_has(table: dict[str, object]) -> None:
    assert [name for name in table if coverage.find(name) is None] == []


def test_array_api_names_are_numpys() -> None:
    names = [n for part in ARRAY_API.values() for n in part]
    assert len(names) == len(set(names)) > 165
    assert [n for n in names if coverage.find(n) is None] == []


@pytest.mark.parametrize(("name", "status"), [
    ("exp", coverage.FUSED), ("pad", coverage.FUSED), ("float32", coverage.FUSED),
    ("linalg.solve", coverage.LIBRARY), ("matmul", coverage.LIBRARY), ("gcd", coverage.LIBRARY),
    ("issubdtype", coverage.PLAIN_CALL), ("unique", coverage.LIBRARY),
    ("longdouble", coverage.REFUSAL), ("complex128", coverage.FUSED),
])
def test_classes(name: str, status: str) -> None:
    assert coverage.classify(name).status == status


def test_samples_are_calls_that_numpy_takes() -> None:
    for name, samples in SAMPLES.items():
        for call, args in samples:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in args])
            assert coverage.find(name) is not None
