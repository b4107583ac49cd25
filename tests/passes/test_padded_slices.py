"""Slices of sums of padded arrays are sums of slices: before and after, and the same bits."""

from __future__ import annotations

import numpy as np
from test_small_passes import check, graph_of

import fusec
from fusec.passes.backward.padded_slices import padded_slices
from fusec.passes.prune import prune
from fusec.passes.rules.simplify import simplify

PADDED = """
        %zero = Const {value=f64(0.0)} : f64
        %zeros = BroadcastTo(%zero) {shape=(3,)} : f64[3]
        %part = Slice(%x) {starts=(0,), steps=(1,), sizes=(2,)} : f64[2]
        %padded = SliceUpdate(%zeros, %part) {starts=(1,), steps=(1,), sizes=(2,)} : f64[3]
        %sum = Add(%y, %padded) : f64[3]"""


def test_a_part_of_what_was_padded_is_read() -> None:
    after = simplify(check(lambda graph: prune(padded_slices(graph)), PADDED + """
        %twice = Mul(%sum, %zero) : f64[3]
        %read = Slice(%twice) {starts=(2,), steps=(1,), sizes=(1,)} : f64[1]
        return %read""", """
        %zero = Const {value=f64(0.0)} : f64
        %zeros = BroadcastTo(%zero) {shape=(3,)} : f64[3]
        %part = Slice(%x) {starts=(0,), steps=(1,), sizes=(2,)} : f64[2]
        %padded = SliceUpdate(%zeros, %part) {starts=(1,), steps=(1,), sizes=(2,)} : f64[3]
        %a = Slice(%y) {starts=(2,), steps=(1,), sizes=(1,)} : f64[1]
        %b = Slice(%padded) {starts=(2,), steps=(1,), sizes=(1,)} : f64[1]
        %c = Add(%a, %b) : f64[1]
        %d = Mul(%c, %zero) : f64[1]
        return %d"""))
    slices = [n.attrs["starts"] for n in prune(after).nodes if n.op == "Slice"]
    assert slices == [(2,), (1,)] and "SliceUpdate" not in prune(after).ops


def test_slices_across_an_edge_and_with_steps_stay() -> None:
    for attrs, size in (("starts=(0,), steps=(1,), sizes=(2,)", 2),
                        ("starts=(2,), steps=(-1,), sizes=(2,)", 2)):
        graph = graph_of(PADDED + f"""
        %read = Slice(%sum) {{{attrs}}} : f64[{size}]
        return %read""")
        assert padded_slices(graph) is graph


def total(u: np.ndarray, v: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A part of a sum that is contracted, whose operands are spread."""
    padded = np.zeros_like(u)
    padded[1:] = v[:-1] * 0.1
    whole = u * c + padded * u[0] + c[0]
    return whole, whole[1:, 2:], whole[:1], np.abs(whole[3:])


def test_parts_have_the_bits_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    u, v, c = rng.random((6, 5)), rng.random((6, 5)), rng.random(5)
    for fp in ("contract", "strict"):
        whole, part, first, rest = fusec.jit(total, fp=fp)(u, v, c)
        np.testing.assert_array_equal(part, whole[1:, 2:])
        np.testing.assert_array_equal(first, whole[:1])
        np.testing.assert_array_equal(rest, whole[3:])
    np.testing.assert_array_equal(whole, total(u, v, c)[0])


def flow(h: np.ndarray, u: np.ndarray, rate: float) -> np.ndarray:
    for _ in range(30):
        u[1:-1] -= rate * (h[1:] - h[:-1])
        h -= 10 * rate * (u[1:] - u[:-1])
    return (h ** 2).sum() + (u ** 2).sum()


def test_reductions_of_the_way_back_read_no_padded_arrays() -> None:
    """Nothing is stored but the cotangents that are carried, which go to and fro."""
    gradient = fusec.grad(flow, (0, 1, 2))
    args = np.linspace(0, 1, 40) ** 2, np.zeros(41), 0.01
    fusec.check_grads(flow, args, order=1)
    *_, back = gradient.concrete(*args).control
    text = str(back.structured)
    assert text.count("= temp") == 2 and text.count("exchange m0 <- m5, m1 <- m4") == 1, text
