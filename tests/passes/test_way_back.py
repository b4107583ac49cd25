"""Passes for the loops of gradients alone, whose cotangents need no bits: numbers, quotients,
additions and sums as they are cheapest, but for values that decide which way the program went."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.ir.text.parse import parse_graph
from fusec.passes.backward.contracted_additions import contracted_additions
from fusec.passes.backward.scalar_factors import scalar_factors
from fusec.passes.backward.shared_reciprocals import shared_reciprocals
from fusec.passes.backward.strided_additions import strided_additions
from fusec.passes.backward.sums_in_parts import sums_in_parts

STEPS = 30


def red_black(u: np.ndarray, f: np.ndarray, h: float) -> np.ndarray:
    """Every other element at a time: cotangents among zeros, in steps of 2."""
    for _ in range(STEPS):
        u[1:-1:2] = 0.5 * (u[:-2:2] + u[2::2] - h * h * f[1:-1:2])
        u[2:-1:2] = 0.5 * (u[1:-2:2] + u[3::2] - h * h * f[2:-1:2])
    return (u ** 2 * np.cos(np.arange(u.size))).sum()


def pivoted(x: np.ndarray, y: np.ndarray, c: float) -> np.ndarray:
    """Quotients of which one is the largest: which one it is must not change."""
    for _ in range(STEPS):
        quotients = x / y
        top = np.max(np.abs(quotients))
        x = x - 0.01 * quotients / (1.0 + top)
        y = y + c * x / y
    return (x * y).sum()


def turned(x: np.ndarray, a: float, b: float) -> np.ndarray:
    """Numbers one after the other, and negatives."""
    for _ in range(STEPS):
        x = x - (-(x ** 2 * a) * b) * a * 0.1
    return (x ** 2).sum()


def plate(u: np.ndarray, r: float) -> np.ndarray:
    """A stencil whose factor is a number: its cotangent is a sum over the inside."""
    for _ in range(STEPS):
        new = u.copy()
        new[1:-1, 1:-1] += r * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
                                - 4.0 * u[1:-1, 1:-1])
        new[0, :], new[:, -1] = u[0, :], 0.5
        u = new
    return (u ** 2 * np.cos(np.arange(u.size)).reshape(u.shape)).sum()


def upwind(u: np.ndarray, c: float) -> np.ndarray:
    """A predictor and a corrector: pads that are small steps from one array."""
    for _ in range(STEPS):
        flux = 0.5 * u * u
        guess = u.copy()
        guess[:-1] = u[:-1] - c * (flux[1:] - flux[:-1])
        flux = 0.5 * guess * guess
        new = u.copy()
        new[1:-1] = 0.5 * (u[1:-1] + guess[1:-1] - c * (flux[1:-1] - flux[:-2]))
        u = new
    return (u ** 3).sum()


def spread(u: np.ndarray, k: float) -> np.ndarray:
    """Three axes, and two numbers whose sums are of different parts."""
    for _ in range(STEPS):
        inside = u[1:-1, 1:-1, 1:-1]
        inside += k * (u[2:, 1:-1, 1:-1] - 2 * inside + u[:-2, 1:-1, 1:-1])
        u[:, 0] = k * k * u[:, 1]
    return (u ** 2).sum()


RNG = np.random.default_rng(8)
CASES = {
    "red_black": (red_black, (RNG.random(41), RNG.random(41), 0.2)),
    "pivoted": (pivoted, (RNG.random(23) - 0.5, 1 + RNG.random(23), 0.01)),
    "turned": (turned, (RNG.random(19), 0.3, 0.4)),
    "plate": (plate, (RNG.random((20, 25)), 0.1)),
    "upwind": (upwind, (1 + 0.3 * RNG.random(41), 0.1)),
    "spread": (spread, (RNG.random((20, 21, 22)), 0.1)),
}
each = pytest.mark.parametrize("case", CASES)


@each
def test_gradients_are_those_of_differences(case: str) -> None:
    function, args = CASES[case]
    fusec.check_grads(function, args, order=1)


@each
@pytest.mark.parametrize("using", ["reference", "cudahost"])
def test_other_backends_agree(case: str, using: str) -> None:
    function, args = CASES[case]
    found = []
    for name in (using, "cpu"):
        with backends.using(name):
            found.append(fusec.grad(function, tuple(range(len(args))))(*map(np.copy, args)))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-14)


def graph(text: str) -> Any:
    return parse_graph(text)


def test_strided_parts_are_added_in_place() -> None:
    before = graph("""graph g(x: f64[9], a: f64[4]) {
        %zero = Const {value=f64(0.0)} : f64
        %zeros = BroadcastTo(%zero) {shape=(9,)} : f64[9]
        %among = SliceUpdate(%zeros, %a) {starts=(1,), steps=(2,), sizes=(4,)} : f64[9]
        %sum = Add(%x, %among) : f64[9]
        return %sum
    }""")
    after = strided_additions(before)
    assert after.outputs[0].node.op == "SliceUpdate"
    assert [n.op for n in after.nodes if n.op == "Slice"] == ["Slice"]


def test_quotients_that_decide_stay() -> None:
    text = """graph g(x: f64[9], d: f64[9]) {{
        %one = Reciprocal(%d) : f64[9]
        %q = Div(%x, %d) : f64[9]
        %by = Mul(%q, %one) : f64[9]
        %test = Less(%x, %{read}) : bool[9]
        %chosen = Where(%test, %by, %x) : f64[9]
        return %chosen
    }}"""
    free, decisive = (shared_reciprocals(graph(text.format(read=r))) for r in ("d", "q"))
    assert "Div" not in [n.op for n in free.nodes] and "Div" in [n.op for n in decisive.nodes]


def test_numbers_become_one() -> None:
    after = scalar_factors(graph("""graph g(x: f64[9], a: f64, b: f64) {
        %p = Mul(%x, %a) : f64[9]
        %q = Neg(%p) : f64[9]
        %r = Mul(%q, %b) : f64[9]
        return %r
    }"""))
    result = after.outputs[0].node
    assert result.op == "Mul" and result.inputs[0] == after.inputs[0] and not (
        result.inputs[1].shape)


def test_sums_of_what_decides_are_not_contracted() -> None:
    after = contracted_additions(graph("""graph g(x: f64[9], y: f64[7]) {
        %zero = Const {value=f64(0.0)} : f64
        %zeros = BroadcastTo(%zero) {shape=(9,)} : f64[9]
        %pad = SliceUpdate(%zeros, %y) {starts=(1,), steps=(1,), sizes=(7,)} : f64[9]
        %s = Add(%x, %pad) : f64[9]
        %t = Sub(%x, %pad) : f64[9]
        %test = Less(%t, %x) : bool[9]
        %chosen = Where(%test, %s, %x) : f64[9]
        return %chosen
    }"""))
    assert {n.op: "contracts" in n.attrs for n in after.nodes if n.op in ("Add", "Sub")} == {
        "Add": True, "Sub": False}


def cells(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Quotients that are whole numbers: one that is less by a bit is in another cell."""
    total = 0.0
    for _ in range(STEPS):
        q = x / h
        total = total + ((q - np.floor(q)) ** 2).sum()
        x = x + h
    return total


def test_quotients_keep_their_cells() -> None:
    h = np.array([49.0, 98.0, 103.0, 107.0, 161.0])
    assert np.floor(h * (1 / h)).min() == 0
    for gradient in fusec.grad(cells, (0, 1))(h, h):
        np.testing.assert_array_equal(gradient, np.zeros(5))


def test_sums_that_decide_keep_their_order() -> None:
    text = """graph g(x: f64[9], y: f64[9]) {{
        %sum = Sum(%x) {{axes=(0,)}} : f64
        %test = Less(%x, %{read}) : bool[9]
        %chosen = Where(%test, %y, %x) : f64[9]
        return %chosen, %sum
    }}"""
    free, decisive = (sums_in_parts(graph(text.format(read=r))) for r in ("y", "sum"))
    assert ["in_parts" in next(n for n in g.nodes if n.op == "Sum").attrs
            for g in (free, decisive)] == [True, False]


def test_what_is_rounded_or_given_to_a_library_keeps_its_bits() -> None:
    text = """graph g(x: f64[9], d: f64[9]) {{
        %one = Reciprocal(%d) : f64[9]
        %q = Div(%x, %d) : f64[9]
        %by = Mul(%x, %one) : f64[9]
        %s = {call} : f64[9]
        %sum = Add(%s, %by) : f64[9]
        return %sum
    }}"""
    form = "form=(\"tuple\", (\"operand\", 0)), named=(\"tuple\",), results=(type(f64[9]),)"
    for call, stays in (("Floor(%q)", True), ("Sort(%q) {" + form + "}", True), ("Exp(%q)", False)):
        after = shared_reciprocals(graph(text.format(call=call)))
        assert ("Div" in [n.op for n in after.nodes]) == stays


def text_of_way_back(case: str) -> str:
    function, args = CASES[case]
    *_, back = fusec.grad(function, (0, 1)).concrete(args[0].copy(), args[1]).control
    return str(back.structured)


def test_one_kernel_reads_what_the_cotangent_of_a_plate_needs() -> None:
    """It adds up the number's as well: none goes over the inside, or strips of it, by itself."""
    text = text_of_way_back("plate")
    (run,) = re.findall("run fused.*", text)
    assert " into " in run, text


def test_small_steps_from_one_array_are_not_stored() -> None:
    """Of the predictor: it, and the cotangent of its flux."""
    text = text_of_way_back("upwind")
    assert text.count("= temp") <= 2, text
