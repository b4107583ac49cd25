"""Cubes and fourth powers become products."""

from __future__ import annotations

import pytest

from fusec.ir.text.compare import assert_same_graph
from fusec.ir.text.parse import parse_graph
from fusec.passes.options import PassOptions
from fusec.passes.prune import prune
from fusec.passes.rules.powers import expand_powers

CUBE = """graph main(x: f64[3]) {
  %c = Const {value=f64(3.0)} : f64
  %Pow = Pow(%x, %c) : f64[3]
  return %Pow
}"""
CUBED = """graph main(x: f64[3]) {
  %Square = Square(%x) : f64[3]
  %Mul = Mul(%Square, %x) : f64[3]
  return %Mul
}"""


def test_a_cube_is_two_products():
    result = prune(expand_powers(parse_graph(CUBE), PassOptions()))
    assert_same_graph(result, parse_graph(CUBED))


def test_a_fourth_power_is_two_squares():
    result = prune(expand_powers(parse_graph(CUBE.replace("3.0", "4.0")), PassOptions()))
    assert [n.op for n in result.nodes] == ["Input", "Square", "Square"]


@pytest.mark.parametrize("text", [CUBE.replace("3.0", "2.5"), CUBE.replace("3.0", "-3.0")])
def test_other_powers_stay(text):
    graph = parse_graph(text)
    assert expand_powers(graph, PassOptions()) is graph


def test_strict_keeps_the_power():
    graph = parse_graph(CUBE)
    assert expand_powers(graph, PassOptions(fp="strict")) is graph
