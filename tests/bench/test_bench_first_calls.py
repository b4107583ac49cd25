"""The bench of first calls: larger samples, and the page of their times."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.bench import first_calls
from fusec.bench.cases.first_call_cases import cases


def test_samples_are_larger() -> None:
    found = {case.name: case.arguments for case in cases(
        10_000, frozenset(["sort", "linalg.inv", "cross", "convolve", "eye"]))}
    assert found["sort"][0].shape == (10_000,) and found["convolve"][0].shape == (100,)
    assert found["linalg.inv"][0].shape == found["eye"][0].shape == (99, 99)
    assert found["cross"][0].shape[1] == 3 and found["cross"][0].size > 9_000


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert first_calls.main(["unique", "--sizes", "1000,5000"]) == 0
    assert capsys.readouterr().out.count("unique") == 2
    rows = list(first_calls.rows((2000,), frozenset(["flatnonzero"])))
    assert rows[0].held >= 2000 * np.dtype(float).itemsize and rows[0].is_within
    page = first_calls.page(rows)
    assert "| 2,000 | 1 |" in page and "| `flatnonzero` |" in page
