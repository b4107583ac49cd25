"""Forming fused multiply-adds: which sums contract, and which must not."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.ir import Graph
from fusec.ir.text.compare import assert_same_graph
from fusec.ir.text.parse import parse_graph
from fusec.ops.graphs.evaluate import evaluate
from fusec.ops.graphs.verify import verify
from fusec.passes.options import Fp, PassOptions
from fusec.passes.pipeline import run_pipeline
from fusec.passes.prune import prune
from fusec.passes.rules.fma import form_fmas


def graph_of(body: str, dtype: str = "f64") -> Graph:
    head = "graph main(a: f64[3], b: f64[3], c: f64[3]) {\n"
    graph = parse_graph((head + body + "\n}").replace("f64", dtype))
    verify(graph)
    return graph


def formed(body: str, fp: Fp = "contract", dtype: str = "f64") -> Graph:
    after = prune(form_fmas(graph_of(body, dtype), PassOptions(fp)))
    verify(after)
    return after


@pytest.mark.parametrize(("before", "expected"), [
    ("%m = Mul(%a, %b) : f64[3]\n%r = Add(%m, %c) : f64[3]", "%r = Fma(%a, %b, %c) : f64[3]"),
    ("%m = Mul(%a, %b) : f64[3]\n%r = Add(%c, %m) : f64[3]", "%r = Fma(%a, %b, %c) : f64[3]"),
    ("%m = Mul(%a, %b) : f64[3]\n%r = Sub(%m, %c) : f64[3]",
     "%n = Neg(%c) : f64[3]\n%r = Fma(%a, %b, %n) : f64[3]"),
    ("%m = Mul(%a, %b) : f64[3]\n%r = Sub(%c, %m) : f64[3]",
     "%n = Neg(%a) : f64[3]\n%r = Fma(%n, %b, %c) : f64[3]"),
    ("%m = Square(%a) : f64[3]\n%r = Add(%m, %c) : f64[3]", "%r = Fma(%a, %a, %c) : f64[3]"),
])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_forms(before: str, expected: str, dtype: str) -> None:
    after = formed(f"{before}\nreturn %r", dtype=dtype)
    assert_same_graph(after, graph_of(f"{expected}\nreturn %r", dtype))


PRODUCTS = [
    "%q = Square(%b) : f64[3]",
    "%s = Square(%b) : f64[3]\n%q = Neg(%s) : f64[3]",
    "%q = Mul(%b, %c) : f64[3]",
    "%s = Mul(%b, %c) : f64[3]\n%q = Slice(%s) {starts=(2,), steps=(-1,), sizes=(3,)} : f64[3]",
]


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("op", ["Add", "Sub"])
def test_a_sum_of_two_products_is_left_alone(product: str, op: str) -> None:
    body = f"%p = Square(%a) : f64[3]\n{product}\n%r = {op}(%p, %q) : f64[3]\nreturn %r"
    assert "Fma" not in str(formed(body))


@pytest.mark.parametrize(("tail", "dtype", "fp"), [
    ("return %r", "f64", "strict"),
    ("return %r, %m", "f64", "contract"),
    ("%z = Maximum(%m, %r) : f64[3]\nreturn %z", "f64", "contract"),
    ("return %r", "i64", "contract"),
    ("return %r", "f16", "contract"),
    ("return %r", "c128", "contract"),
])
def test_not_formed(tail: str, dtype: str, fp: Fp) -> None:
    body = f"%m = Mul(%a, %b) : f64[3]\n%r = Add(%m, %c) : f64[3]\n{tail}"
    assert "Fma" not in str(formed(body, fp, dtype))


def test_no_nan_where_two_squares_cancel() -> None:
    graph = graph_of("""
        %p = Mul(%a, %a) : f64[3]
        %q = Mul(%b, %b) : f64[3]
        %d = Sub(%p, %q) : f64[3]
        %r = Sqrt(%d) : f64[3]
        return %r""")
    after = run_pipeline(graph, PassOptions("contract", verify=True, fuse=False))
    x = np.array([0.1, 1 / 3, 1e-8])
    assert not np.isnan(evaluate(after, [x, x, x])[0]).any()


def test_a_negated_constant_is_folded() -> None:
    graph = graph_of("""
        %k = Const {value=f64(2.0)} : f64
        %m = Mul(%a, %k) : f64[3]
        %r = Sub(%c, %m) : f64[3]
        return %r""")
    after = run_pipeline(graph, PassOptions("contract", verify=True, fuse=False))
    assert_same_graph(after, graph_of("""
        %k = Const {value=f64(-2.0)} : f64
        %r = Fma(%a, %k, %c) : f64[3]
        return %r"""))
