"""The survey of functions of published packages."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fusec.bench.packages.__main__ import PACKAGES
from fusec.bench.packages.case import Cases
from fusec.bench.packages.measure import Finding, difference, measured
from fusec.bench.packages.page import render, verdict

X = np.linspace(0.1, 2.0, 50)
MODULE = '''
import numpy as np

def good(x):
    return np.sin(x) * 2, {"n": len(x)}

def writes(x):
    x += 1.0

def refused(x):
    return np.nditer(x)

def unknown(x):
    return np.lib.scimath.sqrt(x)

class Holder:
    @staticmethod
    def inner(x):
        return x.sum()
'''


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "surveyed.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("fusec.bench.packages.measure.SECONDS", 0.0)
    monkeypatch.delitem(sys.modules, "surveyed", raising=False)
    return "surveyed"


def test_findings(home: str) -> None:
    names = ("good", "writes", "refused", "unknown", "Holder.inner")
    cases = Cases(home, dict.fromkeys(names, (X,)))
    found = {name: measured("surveyed", cases, name) for name in cases.calls}
    for name in ("good", "writes", "Holder.inner"):
        assert not found[name].refusal and not found[name].problem and found[name].speedup > 0
        assert found[name].first > 0
    assert found["refused"].refusal == "np.nditer" and found["refused"].place == "surveyed.py:11"
    assert "np.lib.scimath.sqrt" in found["unknown"].refusal
    np.testing.assert_array_equal(X, np.linspace(0.1, 2.0, 50))  # only copies are written


def test_what_fails_without_fusec_fails(home: str) -> None:
    with pytest.raises(ZeroDivisionError):
        cases = Cases("operator", {"truediv": (1.0, 0.0)})
        measured("operator", cases, "truediv")
    with pytest.raises(ImportError):
        Cases(home, {}).function("missing")


@pytest.mark.parametrize(("got", "want", "told"), [
    (X, X, ""), (X + 1e-12, X, ""), (X + 1e-3, X, "differs by"), (X[1:], X, "float64[49]"),
    (X.astype("f4"), X, "float32"), (1.0, np.float64(1.0), "float for float64"),
    ((X, 1), (X, 2), "other values"), ([X], (X,), "list for tuple"), ({"a": 1}, {"b": 1}, "keys"),
    (np.array([np.nan, 1.0]), np.array([1.0, np.nan]), "other NaN"), ("a", "b", ""),
    (np.array([np.inf]), np.array([-np.inf]), "other NaN or infinities"),
])
def test_differences(got: Any, want: Any, told: str) -> None:
    assert difference(got, want).startswith(told) or told in difference(got, want)
    assert bool(difference(got, want)) == bool(told)


def test_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusec.bench.packages.page.metadata", SimpleNamespace(
        version=lambda name: "1.2.3"))
    findings = [
        Finding("p", "f", 2e-3, 1e-3, 0.1), Finding("p", "g", 1e-6, 4e-6, 0.1),
        Finding("q", "h", refusal="np.x|y (in q.z)", place="q.py:3"),
        Finding("q", "k", 1e-6, 1e-6, 0.1, problem="other values"),
    ]
    assert [verdict(f) for f in findings] == ["faster", "slower", "refused", "differs"]
    page = render(findings)
    assert "## 4 functions of 2 packages" in page
    assert "| p | 1.2.3 | 2 | 1 | 0 | 1 | 0 | 0 |" in page
    assert "| f | 2.00 ms | 1.00 ms | 2.00 | 100 ms | faster |" in page
    assert "refused: np.x\\|y (in q.z) — q.py:3" in page


def test_the_survey_is_large_enough() -> None:
    assert len(PACKAGES) >= 15 and sum(len(c.calls) for c in PACKAGES.values()) >= 150


def test_every_refusal_of_the_committed_page_has_a_line() -> None:
    page = (Path(__file__).parents[2] / "docs" / "packages.md").read_text()
    rows = [line for line in page.splitlines() if "| refused: " in line]
    assert rows and all(" — " in row for row in rows)
