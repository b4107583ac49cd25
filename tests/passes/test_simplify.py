"""Algebraic simplification, before and after, in the text form."""

from __future__ import annotations

import pytest

from fusec.ir.text.compare import assert_same_graph
from fusec.ir.text.parse import parse_graph
from fusec.ops.graphs.verify import verify
from fusec.passes.prune import prune
from fusec.passes.rules.simplify import simplify


def check(before: str, expected: str, parameters: str = "x: f64[2,3]") -> None:
    """Simplify then prune the body ``before`` and compare with the body ``expected``."""
    head = f"graph main({parameters}) {{\n"
    graph, wanted = (parse_graph(f"{head}{body}\n}}") for body in (before, expected))
    verify(graph)
    verify(wanted)
    after = prune(simplify(graph))
    verify(after)
    assert_same_graph(after, wanted)
    assert simplify(after) is after


CASES = {
    "chain of rules": ("""
        %one = Const {value=f64(1.0)} : f64
        %a = Mul(%x, %one) : f64[2,3]
        %b = Neg(%a) : f64[2,3]
        %c = Neg(%b) : f64[2,3]
        %d = Mul(%c, %a) : f64[2,3]
        return %d""", """
        %d = Square(%x) : f64[2,3]
        return %d"""),
    "division by a power of two": ("""
        %eight = Const {value=f64(8.0)} : f64
        %d = Div(%x, %eight) : f64[2,3]
        return %d""", """
        %eighth = Const {value=f64(0.125)} : f64
        %d = Mul(%x, %eighth) : f64[2,3]
        return %d"""),
    "a result stays a fresh array, of which the rest reads the source": ("""
        %a = Maximum(%x, %x) : f64[2,3]
        %b = Mul(%a, %x) : f64[2,3]
        return %a, %b""", """
        %a = Maximum(%x, %x) : f64[2,3]
        %b = Square(%x) : f64[2,3]
        return %a, %b"""),
    "zeros of integers get the shape": ("""
        %i = Cast(%x) {dtype=i64} : i64[2,3]
        %d = Sub(%i, %i) : i64[2,3]
        %e = Invert(%d) : i64[2,3]
        return %e""", """
        %zero = Const {value=i64(0)} : i64
        %d = BroadcastTo(%zero) {shape=(2, 3)} : i64[2,3]
        %e = Invert(%d) : i64[2,3]
        return %e"""),
    "transpose of transpose": ("""
        %t = Transpose(%x) {perm=(1, 0)} : f64[3,2]
        %u = Transpose(%t) {perm=(1, 0)} : f64[2,3]
        %d = Exp(%u) : f64[2,3]
        return %d""", """
        %d = Exp(%x) : f64[2,3]
        return %d"""),
    "slice of slice": ("""
        %s = Slice(%x) {starts=(0, 2), steps=(1, -1), sizes=(2, 3)} : f64[2,3]
        %t = Slice(%s) {starts=(1, 0), steps=(1, 2), sizes=(1, 2)} : f64[1,2]
        return %t""", """
        %t = Slice(%x) {starts=(1, 2), steps=(1, -2), sizes=(1, 2)} : f64[1,2]
        return %t"""),
    "reshape of reshape": ("""
        %a = Reshape(%x) {shape=(6,)} : f64[6]
        %b = Reshape(%a) {shape=(3, 2)} : f64[3,2]
        %c = Exp(%b) : f64[3,2]
        return %c""", """
        %b = Reshape(%x) {shape=(3, 2)} : f64[3,2]
        %c = Exp(%b) : f64[3,2]
        return %c"""),
    "lossless cast of cast": ("""
        %a = Cast(%x) {dtype=f32} : f32[2,3]
        %b = Cast(%a) {dtype=f64} : f64[2,3]
        %c = Cast(%b) {dtype=f32} : f32[2,3]
        return %c""", """
        %a = Cast(%x) {dtype=f32} : f32[2,3]
        return %a"""),
    "broadcasts that an op does itself": ("""
        %two = Const {value=f64(2.0)} : f64
        %b = BroadcastTo(%two) {shape=(2, 3)} : f64[2,3]
        %c = Add(%x, %b) : f64[2,3]
        return %c""", """
        %two = Const {value=f64(2.0)} : f64
        %c = Add(%x, %two) : f64[2,3]
        return %c"""),
    "multiplication by an array of ones": ("""
        %one = Const {value=f64(1.0)} : f64
        %b = BroadcastTo(%one) {shape=(2, 3)} : f64[2,3]
        %c = Mul(%x, %b) : f64[2,3]
        %d = Exp(%c) : f64[2,3]
        return %d""", """
        %d = Exp(%x) : f64[2,3]
        return %d"""),
    "reading elsewhere than was written": ("""
        %e = Exp(%x) : f64[2,3]
        %v = Slice(%e) {starts=(1, 0), steps=(1, 1), sizes=(1, 3)} : f64[1,3]
        %u = SliceUpdate(%e, %v) {starts=(0, 0), steps=(1, 1), sizes=(1, 3)} : f64[2,3]
        %r = Slice(%u) {starts=(1, 0), steps=(1, 1), sizes=(1, 3)} : f64[1,3]
        %q = Slice(%u) {starts=(0, 0), steps=(1, 1), sizes=(1, 3)} : f64[1,3]
        %d = Sub(%r, %q) : f64[1,3]
        return %d""", """
        %e = Exp(%x) : f64[2,3]
        %v = Slice(%e) {starts=(1, 0), steps=(1, 1), sizes=(1, 3)} : f64[1,3]
        %r = Slice(%e) {starts=(1, 0), steps=(1, 1), sizes=(1, 3)} : f64[1,3]
        %d = Sub(%r, %v) : f64[1,3]
        return %d"""),
}


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(name: str) -> None:
    check(*CASES[name])


UNCHANGED = {
    "a result stays a fresh array": """
        %one = Const {value=f64(1.0)} : f64
        %d = Mul(%x, %one) : f64[2,3]
        return %d""",
    "two results stay two arrays": """
        %one = Const {value=f64(1.0)} : f64
        %a = Exp(%x) : f64[2,3]
        %b = Mul(%a, %one) : f64[2,3]
        return %a, %b""",
    "a whole-array write does not alias its source": """
        %a = Exp(%x) : f64[2,3]
        %b = SliceUpdate(%x, %a) {starts=(0, 0), steps=(1, 1), sizes=(2, 3)} : f64[2,3]
        return %a, %b""",
    "lossy cast of cast": """
        %a = Cast(%x) {dtype=f32} : f32[2,3]
        %b = Cast(%a) {dtype=f64} : f64[2,3]
        return %b""",
    "a choice whose condition gives the shape": """
        %r = Max(%x) {axes=(0, 1)} : f64
        %p = IsNan(%x) : bool[2,3]
        %w = Where(%p, %r, %r) : f64[2,3]
        return %w""",
    "integers through floats to integers": """
        %a = Cast(%x) {dtype=f32} : f32[2,3]
        %b = Cast(%a) {dtype=f64} : f64[2,3]
        %c = Cast(%b) {dtype=u8} : u8[2,3]
        return %c""",
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_left_alone(name: str) -> None:
    check(UNCHANGED[name], UNCHANGED[name])


def test_kind_of_a_result_is_kept() -> None:
    # x * 1 of a rank-0 array is a NumPy scalar, so it is not x.
    body = """
        %one = Const {value=f64(1.0)} : f64
        %a = Mul(%x, %one) : f64
        return %a"""
    check(body, body, "x: f64[]")
