"""Kernels that would compute too much are cut: compiling stays linear, and so does running."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.passes.fusion import fusion
from fusec.passes.fusion.kernel_work import MAX_ENTANGLED_WORK, MAX_WORK, work_of

X = np.linspace(0.1, 2.0, 50)


def sines(x, factors):
    total = 0.0
    for factor in factors:
        total = total + np.sin(x * factor)
    return total


def averaged(x, steps):
    for step in steps:
        x = x * 0.5 + step
    return x


def each_step(x, steps):
    out = np.empty((len(steps), x.size))
    for i, step in enumerate(steps):
        x = x * 0.5 + step
        out[i] = x
    return out


def every_sine(x, steps):
    made = []
    for _ in steps:
        x = np.sin(x)
        made.append(x)
    return made


def entangled(x, factors):
    """Halfway all curves are in use: each of two results needs every one."""
    curves = [np.arctan(np.sin(np.exp(x * factor))) for factor in factors]
    up = down = 0.0
    for one, other in zip(curves, reversed(curves), strict=True):
        up, down = up * one + 1.0, down * other - 1.0
    return up, down


def distances(p, factors):
    gaps = p[:, None] - p[None]
    for factor in factors:
        gaps = np.sin(gaps * factor)
    return gaps.sum(axis=1)


def rows(count):
    return [X + k / count for k in range(count)]


def kernels(f, *args):
    graph = fusec.jit(f).concrete(*args).optimized_graph
    return [node for node in graph.nodes if node.op == "Fused"]


def work(kernel):
    return sum(work_of(n.out()) for n in kernel.attrs["body"].nodes if n.op != "Input")


@pytest.mark.parametrize("f", [sines, averaged, each_step, every_sine])
def test_of_any_number_of_steps_no_kernel_computes_more_than_the_bound(f):
    found = kernels(f, X, rows(400))
    assert len(found) > 1
    # What the cut value computes itself comes on top.
    assert max(map(work, found)) <= MAX_WORK + 50


@pytest.mark.parametrize("f", [sines, averaged, each_step, every_sine])
@pytest.mark.parametrize("count", [1, 60, 350])
def test_a_kernel_in_parts_gives_numpys_values(f, count):
    table = rows(count)
    np.testing.assert_allclose(fusec.jit(f)(X, table), f(X, table), rtol=1e-12)


def test_what_fits_is_one_kernel():
    assert len(kernels(sines, X, rows(10))) == 1
    assert len(kernels(averaged, X, rows(75))) == 1


def test_kernels_that_would_exchange_many_values_are_one_up_to_another_bound():
    table = rows(22)
    [kernel] = kernels(entangled, X, table)
    assert MAX_WORK < work(kernel) <= MAX_ENTANGLED_WORK
    np.testing.assert_allclose(
        fusec.jit(entangled)(X, table), entangled(X, table), rtol=1e-11)


def test_nothing_larger_than_the_arrays_of_the_call_is_stored():
    factors = [1.0 + k / 100 for k in range(100)]

    def unrolled(p, table):
        return distances(p, [t[0] for t in table])

    table = [np.array([f]) for f in factors]
    [kernel] = kernels(unrolled, X, table)
    assert work(kernel) > MAX_WORK
    np.testing.assert_allclose(fusec.jit(unrolled)(X, table), unrolled(X, table), rtol=1e-9)


def test_the_explanation_says_why_they_are_two():
    def composed(x):
        for function in [np.sin, np.exp] * 30:
            x = function(-x)
        return x

    text = str(fusec.explain(fusec.jit(composed), X))
    assert "so much that it compiles and runs slower than two" in text


def twins(x, rows):
    up = down = x
    for row in rows:
        up, down = up * row + 1.0, down * row - 1.0
    return up, down


def test_operands_that_two_results_read_count_once():
    assert len(kernels(twins, X, rows(30))) == 1


def test_a_gradient_of_two_entangled_values_is_grouped_a_few_times(monkeypatch):
    """Two chains in different kernels, each step of which needs both: a round stored one step."""
    rounds = []
    group = fusion.group
    monkeypatch.setattr(fusion, "group", lambda *given: rounds.append(1) or group(*given))

    def loss(a, b):
        for _ in range(80):
            a, b = np.sin(a) * 0.5 + b, b * a + 1.0
        return (a + b).sum()

    slope = fusec.grad(loss)
    fusec.jit(lambda a, b: slope(a, b)).trace(X, X + 1.0).optimize()
    assert len(rounds) <= 8
