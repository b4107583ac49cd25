"""Structural equality and diffs of graphs."""

from __future__ import annotations

import pytest

from fusec.ir.text.compare import UNCHANGED, assert_same_graph, graph_diff, graphs_equal
from fusec.ir.text.parse import parse_graph

BASE = """graph main(x: f64[3], y: f64[3]) {
  %a = Exp(%x) : f64[3]   # f.py:1
  %b = Neg(%y) : f64[3]
  %c = Sub(%a, %b) : f64[3]
  %d = Sin(%c) : f64[3]
  %e = Cos(%d) : f64[3]
  return %e
}"""


def test_names_locations_and_order_do_not_count() -> None:
    other = """graph main(x: f64[3], y: f64[3]) {
      %q = Neg(%y) : f64[3]
      %r = Exp(%x) : f64[3]
      %c = Sub(%r, %q) : f64[3]
      %d = Sin(%c) : f64[3]
      %e = Cos(%d) : f64[3]
      return %e
    }"""
    assert graphs_equal(parse_graph(BASE), parse_graph(other))


@pytest.mark.parametrize(("old", "new"), [
    ("Sub(%a, %b)", "Sub(%b, %a)"), ("Sin", "Tan"), ("return %e", "return %d"),
    ("Cos(%d)", 'Cos(%d) @"gpu"'), ("Cos(%d)", "Cos(%d, ^a)"), ("Cos(%d)", "Cos(%d) {k=1}"),
    ("return %e", "return %e update x = %e"), ("x: f64[3], y", "z: f64[3], y"),
    ("%e = Cos(%d) : f64[3]", "%e = Cos(%d) : f64[3] %dead = Cos(%e) : f64[3]"),
])
def test_everything_else_counts(old: str, new: str) -> None:
    text = BASE.replace(old, new)
    text = text.replace("%x)", "%z)") if "z:" in new else text
    one, two = parse_graph(BASE), parse_graph(text)
    assert not graphs_equal(one, two)
    with pytest.raises(AssertionError, match="the graphs differ"):
        assert_same_graph(one, two)


def test_zero_signs_count() -> None:
    text = "graph main() { %c = Const {value=0.0} : f64~ return %c }"
    assert not graphs_equal(parse_graph(text), parse_graph(text.replace("0.0", "-0.0")))


def test_diff_elides_what_did_not_change() -> None:
    before, after = parse_graph(BASE), parse_graph(BASE.replace("Sin", "Tan"))
    assert graph_diff(before, before) == UNCHANGED
    assert graph_diff(before, after).split("\n") == [
        "  … 3 unchanged lines",
        "    %c = Sub(%a, %b) : f64[3]",
        "-   %d = Sin(%c) : f64[3]",
        "+   %d = Tan(%c) : f64[3]",
        "    %e = Cos(%d) : f64[3]",
        "  … 2 unchanged lines",
    ]
