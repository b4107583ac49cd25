"""Kernels of many branches and of many results: work grows with them, not faster."""

from __future__ import annotations

import re

import numpy as np

import fusec
from fusec.codegen.cpu.nests.sides import MOST_BRANCHES, _needed_by
from fusec.codegen.kernels.loop_ir import expr, walk
from fusec.passes.fusion.groups import MAX_RESULTS

F8, BOOL = np.dtype(np.float64), np.dtype(bool)


class Counting(dict):
    asked = 0

    def __getitem__(self, key):
        self.asked += 1
        return super().__getitem__(key)


def looked_at(count: int) -> int:
    """How many expressions are asked for users, in a chain of so many selects."""
    total = expr("load", F8, attr=0)
    for k in range(count):
        more = expr("exp", F8, expr("add", F8, total, expr("param", F8, attr=k)))
        total = expr("select", F8, expr("param", BOOL, attr=-1 - k), more, total)
    order = list(walk([total]))
    users = Counting()
    for e in order:
        for arg in e.args:
            users.setdefault(id(arg), set()).add(id(e))
    sides = [_needed_by(e, k, users) for e in order if e.op == "select" for k in (1, 2)]
    assert {x.op for x in sides[0]} == {"exp", "add", "param"} and not sides[1]
    return users.asked


def test_the_sides_of_a_chain_of_selects_are_found_in_linear_time():
    assert looked_at(400) <= 4.5 * looked_at(100)


def test_a_kernel_gives_back_a_bounded_number_of_arrays():
    results = ", ".join(f"x * {k}.0 + y" for k in range(150))  # a generator would be a loop
    many = fusec.jit(eval(f"lambda x, y: ({results})"))
    x, y = np.linspace(0.0, 1.0, 9), np.ones(9)
    for got, expected in zip(many(x, y), [x * float(k) + y for k in range(150)], strict=True):
        np.testing.assert_array_max_ulp(got, expected)
    kernels = many.concrete(x, y).kernels
    assert len(kernels) == 4
    outputs = [[b for b in k.step.kernel.buffers if b.role == "out"] for k in kernels]
    assert all(len(buffers) <= MAX_RESULTS for buffers in outputs)


def test_a_kernel_of_many_sines_calls_one_and_rounds_as_short_kernels_do():
    """Twelve inlined copies took LLVM four times as long, and ran 1.5 times as long."""
    @fusec.jit
    def chain(x, y):
        for k in range(12):
            x = np.sin(x) * (k + 0.5) + y
        return x, np.exp(x)

    @fusec.jit
    def link(x, y, factor):
        return np.sin(x) * factor + y

    x, y = np.linspace(-3.0, 90.0, 1003), np.linspace(0.0, 2.0, 1003)
    got, exponential = chain(x, y)
    (kernel,) = chain.concrete(x, y).kernels
    calls = [line for line in kernel.asm["opt"].splitlines() if " call " in line]
    assert sum("@fusec.sin.v8f64(" in line for line in calls) == 12
    assert not any("@fusec.exp" in line for line in calls)
    expected = x
    for k in range(12):
        expected = link(expected, y, k + 0.5)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_max_ulp(exponential, np.exp(expected), 2)


def test_choices_among_many_numbers_are_made_before_a_kernels_loop(compiled):
    """As branches within branches, of which only one side is computed, 300 took LLVM 79 s."""
    @fusec.jit
    def above(image, x):
        threshold = 0
        for t in range(100):
            if x[0] > t:
                threshold = t
        return image > threshold

    image = np.arange(0, 256, 5, dtype=np.uint8)
    for x in (-1.0, 0.5, 30.0, 1000.0):
        got = above(image, np.array([x]))
        np.testing.assert_array_equal(got, above.__wrapped__(image, np.array([x])))
    assert compiled and not any("%chosen" in text for text in compiled)


def test_few_choices_of_a_kernel_are_branches(compiled):
    @fusec.jit
    def nearest(y, x):
        for t in range(40):
            y = np.where(x[0] > t, y * (t + 0.5) + np.sqrt(y), y - t)
        return y

    y = np.linspace(0.5, 2.0, 50)
    for x in (-1.0, 7.5, 1000.0):
        with np.errstate(invalid="ignore"):
            expected = nearest.__wrapped__(y, np.array([x]))
        np.testing.assert_allclose(nearest(y, np.array([x])), expected, rtol=1e-12)
    branches = [len(re.findall(r"%chosen\d+ = alloca <", text)) for text in compiled]
    assert 0 < max(branches) <= 2 * MOST_BRANCHES  # of the vectors, and of the rest
