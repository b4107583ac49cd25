"""Gradients through loops and branches that data decides, with writes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients.differences import differences

import fusec


def recurrence(x: Any) -> Any:
    s, a = 0.0, x.copy()
    for i in range(1, len(x)):
        a[i] = a[i] * a[i - 1]
        s = s + a[i]
    return s


def triangle(x: Any) -> Any:
    for i in range(12):
        for j in range(i):
            x[i] = x[i] - 0.1 * x[j] * x[j]
    return (x * x).sum()


def branches_in_a_loop(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if x[i] > 1.0:
            s += x[i] * x[i]
        else:
            s -= np.sin(x[i])
            x[i] = x[i] * s
    return s + x[0]


def left_early(x: Any) -> Any:
    y = x.copy()
    for _ in range(60):
        y[1:] = 0.5 * y[:-1] * y[1:] + 0.1 * y[1:]
        if np.abs(y).max() < 0.5:
            break
    return (y * y).sum()


def returned_early(x: Any) -> Any:
    y = x * 2.0
    for k in range(30):
        if y[0] > 40.0:
            return y.sum() * k
        y = y * x + 1.0
    return y.prod()


def backwards(x: Any) -> Any:
    y = x.copy()
    for i in range(len(x) - 2, -1, -2):
        y[i] = y[i] + np.exp(-y[i + 1]) * x[i]
    return (y * y * x).sum()


def branch(x: Any) -> Any:
    z = np.exp(x) * x[0] if x.sum() > 3.0 else x * 3
    return (z * z).sum()


def helper(x: Any, y: Any) -> Any:
    for _ in range(3):
        x = x * y - 0.25 * x
    return x


def called(x: Any) -> Any:
    total, helped = 0.0, fusec.jit(helper)
    for i in range(4):
        total = total + helped(x, x[i]).sum()
    return total


def as_long_as(x: Any) -> Any:
    while x[0] < 10.0:
        x = x * x + 0.5
    return x.sum()


ROWS = np.array([0, 3, 3, 7, 12, 20])


def rows_of_any_length(x: Any) -> Any:
    y = np.zeros(5)
    for i in range(5):
        for k in range(ROWS[i], ROWS[i + 1]):
            y[i] += x[k] * x[k] * y[i - 1] + x[k]
    return (y * y).sum()


def a_loop_in_a_branch(x: Any) -> Any:
    s = 1.0
    for i in range(6):
        if x[i] > 1.0:
            for k in range(ROWS[i % 5]):
                s = s * x[k] * 0.9
        else:
            s = s + x[i] * s
    return s


def counted_in_a_branch(x: Any) -> Any:
    s, k = x[0], 2
    if s > 10.0:
        return s
    for i in range(9):
        s = s * x[i] + x[0]
        while (k := (k + 1) % 20) != 9:
            s = s * x[k] * 0.9 + x[i]
    return s


def loops_of_one_number(x: Any) -> Any:
    s, k = x[0], int(x[3] * 10)
    if s > 10.0:
        s = s * s
    else:
        for i in range(k):
            s = s * x[i] + x[2]
            for j in range(k):
                s = s * x[j] * 0.9 + x[i]
    return s


def loops_with_a_branch_in_a_branch(x: Any) -> Any:
    s, k = x[0], int(x[3] * 10)
    if s > 10.0:
        s = s * s
    else:
        for _ in range(k % 9):
            if s < x[3]:
                s += 0.5
            for j in range(k % 9):
                x[j] = min(x[k] * x[j], 0.5)
    return s + (x * x).sum()


def copies_in_a_branch(x: Any) -> Any:
    w, z = x.copy(), x.copy()
    if x[0] > 10.0:
        w[1] += 1.0
    else:
        x[[1, 2, 1]] = 2.0 * z[3:6] * z[2]
    return (x * x * w).sum() + z[0]


def copies_of_both_sides(x: Any) -> Any:
    w, z = x.copy(), x.copy()
    for i in range(1, 15):
        if x[i] > 1.0:
            w[1:] *= x[i]
        else:
            x[1:] = 0.5 * z[:-1] * x[1:]
    return (x * x * w).sum() + z[0]


PROGRAMS = [copies_in_a_branch, copies_of_both_sides, as_long_as, rows_of_any_length,
            a_loop_in_a_branch, recurrence, triangle, branches_in_a_loop, left_early,
            returned_early, backwards, branch, called, counted_in_a_branch, loops_of_one_number,
            loops_with_a_branch_in_a_branch]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_differences(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fusec.config, "verify", True)
    rng = np.random.default_rng(3)
    x, v = rng.uniform(0.5, 1.5, 20), rng.normal(size=20)
    expected = differences(program, (x,))
    value, gradient = fusec.value_and_grad(program)(x.copy())
    assert value == pytest.approx(program(x.copy()), rel=1e-13)
    np.testing.assert_allclose(gradient, expected, rtol=2e-9, atol=2e-9 * abs(expected).max())
    _, tangent = fusec.jvp(program, (x.copy(),), (v,))
    assert tangent == pytest.approx((gradient * v).sum(), rel=1e-12)


@pytest.mark.parametrize("program", [recurrence, branches_in_a_loop, branch],
                         ids=lambda f: f.__name__)
def test_second_derivatives(program: Callable[..., Any]) -> None:
    rng = np.random.default_rng(4)
    x, v = rng.uniform(0.5, 1.5, 8), rng.normal(size=8)

    def along(x: Any) -> Any:
        return (fusec.grad(program)(x) * v).sum()

    expected = differences(lambda x: (fusec.grad(program)(x) * v).sum(), (x,))
    np.testing.assert_allclose(fusec.grad(along)(x.copy()), expected, rtol=1e-7, atol=1e-7)
    _, tangent = fusec.jvp(fusec.grad(program), (x.copy(),), (v,))
    np.testing.assert_allclose(tangent, expected, rtol=1e-7, atol=1e-7)


def test_the_loop_that_keeps_values_takes_the_place_of_the_loop() -> None:
    x = np.linspace(0.5, 1.5, 50)
    graph = fusec.value_and_grad(recurrence).concrete(x).optimized_graph
    loops = [node for node in graph.nodes if node.op == "Loop"]
    assert [node.name for node in loops] == ["Loop", "Loop_2"]
    assert "extends" not in loops[0].attrs
    kept = [v.type for v in loops[0].inputs if v.shape == (49,)]
    assert len(kept) == 2  # the two elements that are multiplied, not the array


def test_a_loop_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    def printing(x: Any) -> Any:
        s = 1.0
        for i in range(3):
            fusec.print("step", i)
            s = s * x[i]
        return s

    x = np.array([2.0, 3.0, 5.0])
    np.testing.assert_allclose(fusec.grad(printing)(x), [15, 10, 6])
    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"


def test_tangents_that_a_loop_carries_and_leaves_as_they_are() -> None:
    def halved(x: Any) -> Any:
        w = x
        for _ in range(18):
            w = w[w > 100.0]
            w = x.copy()
            w[1:] *= 0.5
        return w.sum()

    x, v = np.ones(3), np.array([1.0, 10.0, 100.0])
    assert fusec.jvp(halved, (x,), (v,))[1] == 56
    np.testing.assert_array_equal(fusec.grad(halved)(x), [1, 0.5, 0.5])


def found_or_first(x: Any) -> Any:
    for v in x:
        if v > 0.5:
            r = v
            break
    else:
        r = x[0]
    return r


def doubled_until(x: Any) -> Any:
    while x < 10.0:
        y = x * 2
        x = y + 1
    return y


def test_results_that_some_way_through_the_function_does_not_bind() -> None:
    x = np.array([0.1, 0.9, 0.4])
    np.testing.assert_array_equal(fusec.grad(found_or_first)(x), [0, 1, 0])
    np.testing.assert_array_equal(fusec.jacobian(found_or_first)(x[::2].copy()), [1, 0])
    gradient = fusec.grad(doubled_until)
    assert gradient(1.0) == 8
    with pytest.raises(UnboundLocalError, match="'y'"):
        gradient(20.0)
