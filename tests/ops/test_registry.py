"""The registry walked row by row: columns that the row's kind needs, and rows that are reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fusec
from fusec.ops import Op, all_ops
from fusec.ops.calls.library import LIBRARY
from fusec.ops.derivatives import Refused, Zero
from fusec.ops.formulas import FORMULAS
from fusec.trace import tracer  # noqa: F401 (it fills the tables)
from fusec.trace.values.handlers import FUNCTIONS

ROWS = list(all_ops())
VARIADIC = {"Gather", "Scatter", "Fused", "Cond", "Loop", "Concat", "ScalarCall",
            "Call", "Recursion", "CheckedRecursion", "GivenDerivative"}
FRONT_ENDS = Path(fusec.__file__).parent / "trace"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_columns(row: Op) -> None:
    assert callable(row.infer) and callable(row.reference) and row.cost >= 0
    assert row.arity is not None or row.kind == "extern" or row.name in VARIADIC
    assert (row.scalar is not None) == (row.kind in ("elementwise", "reduce"))
    assert (row.decompose is not None) == (row.kind == "composite")
    if row.ufunc is not None:
        assert row.arity == row.ufunc.nin and row.ufunc in row.numpy


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rules_of_derivatives_have_their_form(row: Op) -> None:
    """Elementwise rows, and those of formulas, have partials, one for each operand, or both
    directions; others both."""
    assert (row.vjp is None) == (row.jvp is None)
    is_elementwise = row.kind == "elementwise" or row.name in dict(FORMULAS.values())
    assert row.partials is None or (is_elementwise and row.vjp is None)
    if isinstance(row.partials, tuple):
        assert len(row.partials) == row.arity
    for rule in (row.vjp, row.jvp):
        assert rule is None or callable(rule) or isinstance(rule, Zero | Refused)


def _named_in_front_ends() -> set[str]:
    text = "\n".join(p.read_text(encoding="utf-8") for p in FRONT_ENDS.rglob("*.py"))
    return set(re.findall(r"[\"'](\w+)[\"']", text))


def test_every_library_row_is_reached() -> None:
    """A row whose function another handler answers for is dead unless a front end names it."""
    named = _named_in_front_ends()
    dead = [op for op, call in LIBRARY.items() if op not in named
            and (row := FUNCTIONS.get(call.function)) is not None and not row.is_library]
    assert dead == []


def test_names_are_unique_words() -> None:
    assert all(re.fullmatch(r"[A-Z]\w*", row.name) for row in ROWS)
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(callable(f) for row in ROWS for f in row.numpy)
