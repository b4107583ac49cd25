"""Every row has a derivative: a rule, zero by nature, or refused with its reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rule_tables import DOCS, END, START, kind_of, tables

import fusec
from fusec.errors import UnsupportedError
from fusec.ops import Op, all_ops
from fusec.ops.derivatives import Refused

ROWS = list(all_ops())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_one_of_three(row: Op) -> None:
    assert kind_of(row) in ("rule", "zero", "refused", "graph")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_reasons_are_sentences(row: Op) -> None:
    for rule in (row.partials, row.vjp, row.jvp):
        if isinstance(rule, Refused):
            assert len(rule.reason.split()) > 5 and not rule.reason.endswith(".")


def test_what_is_refused_names_the_call_its_line_and_the_reason() -> None:
    x = np.linspace(-1, 1, 5)
    with pytest.raises(UnsupportedError) as caught:
        fusec.grad(lambda x: np.unique(x).sum())(x)
    text = str(caught.value)
    assert "np.unique" in text and "equal elements become one" in text and __file__ in text


def test_the_page_has_the_tables() -> None:
    """``python -m tests.gradients.rule_tables`` writes them."""
    page = Path(DOCS).read_text(encoding="utf-8")
    written = page[page.index(START) + len(START):page.index(END)]
    assert written.strip() == tables().strip()
