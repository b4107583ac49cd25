"""The evaluator: NumPy's values, dtypes and kinds."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.errors import InternalError
from fusec.ir.text.parse import parse_graph
from fusec.ops.graphs.evaluate import evaluate, evaluate_all


def test_values_kinds_and_updates() -> None:
    graph = parse_graph("""graph main(x: f64[2,3], s: f64~) {
      %t = Mul(%s, %s) : f64~
      %c = Cast(%t) {dtype=f64} : f64
      %y = Add(%x, %c) : f64[2,3]
      %m = Max(%y) {axes=(0, 1)} : f64
      %v = Slice(%y) {starts=(1, 2), steps=(-1, -1), sizes=(2, 2)} : f64[2,2]
      return %m, %v, %t
      update x = %y
    }""")
    x = np.arange(6.0).reshape(2, 3)
    (largest, view, weak), [(position, new)] = evaluate_all(graph, [x, 3.0])
    assert type(largest) is np.float64 and largest == 14.0
    assert type(weak) is float and weak == 9.0
    np.testing.assert_array_equal(view, (x + 9)[::-1, 2:0:-1])
    assert position == 0
    np.testing.assert_array_equal(new, x + 9)
    assert x[0, 0] == 0.0


def test_weak_numbers_follow_python() -> None:
    graph = parse_graph("""graph main(a: i64~, b: i64~) {
      %q = FloorDiv(%a, %b) : i64~
      %p = Less(%a, %b) : bool~
      return %q, %p
    }""")
    assert evaluate(graph, [-7, 2]) == [-4, True]
    with pytest.raises(ZeroDivisionError):
        evaluate(graph, [1, 0])


def test_python_ints_beyond_int64_raise() -> None:
    graph = parse_graph("graph main(a: i64~) { %s = Mul(%a, %a) : i64~ return %s }")
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        evaluate(graph, [2**40])


def test_fused_bodies_are_evaluated() -> None:
    graph = parse_graph("""graph main(x: f64[3]) {
      %f = Fused(%x) {body=graph fused(y: f64[3]) {
        %a = Square(%y) : f64[3]
        %s = Max(%a) {axes=(0,)} : f64
        return %a, %s
      }} : (f64[3], f64)
      return %f:1
    }""")
    assert evaluate(graph, [np.array([1.0, -3.0, 2.0])]) == [9.0]


def test_wrong_arguments_are_named() -> None:
    graph = parse_graph("graph main(x: f64[3]) { return %x }")
    with pytest.raises(InternalError, match="has 1 parameters, got 2 arguments"):
        evaluate(graph, [1, 2])
    with pytest.raises(InternalError, match=r"'x' \(Input\) gave float32"):
        evaluate(graph, [np.ones(3, np.float32)])
