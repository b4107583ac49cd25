"""Which loops of known length are unrolled: by the weight of an iteration, and its effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

X = np.random.default_rng(0).normal(size=(9, 12))


def elementwise(x):
    for _ in range(12):
        x = np.sqrt(x * x + 1.0) * 0.5 + x * 0.25
    return x


def stencil(x):
    for _ in range(12):
        new = x.copy()
        new[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        new[0] = new[1]
        new[-1] = new[-2] * 0.5
        x = new
    return x


def light(x):
    for k in range(8):
        x[k] = x[k - 1] * 2 + k
    return x


def libraries(x):
    m = x @ x.T
    for _ in range(20):
        m = np.linalg.solve(m + 20 * np.eye(9), np.ones((9, 9))) + m * 0.5 - np.sin(m)
    return m


def nested(x):
    total = np.zeros_like(x)
    for i in range(4):
        for j in range(8):
            total[1:] += x[:-1] * (i + 1)
            total[:, 1:] -= x[:, :-1] * j
            total[:-1] += total[1:]
    return total


def exits(x):
    for k in range(14):
        new = x.copy()
        new[1:] += 0.5 * x[:-1] - 0.125 * x[1:]
        new[:, :-1] -= 0.25 * x[:, 1:]
        new[0] = x[-1] * 0.5 + np.abs(x[1])
        x = new
        if np.abs(x).max() > 50 + k:
            break
    return x, k


def by_list(x):
    scales = ["a", "b", "c", "d", "e", "f"]
    factors = {"a": 1.0, "b": 0.5, "c": 0.25, "d": 2.0, "e": 1.5, "f": 0.125}
    for k in range(6):
        x = x.copy()
        x[1:-1] = (x[:-2] + x[2:] - 2 * x[1:-1]) * factors[scales[k]] + x[1:-1]
        x[:, 1:-1] = (x[:, :-2] + x[:, 2:]) * 0.5 - x[:, 1:-1] * factors[scales[k]]
        x[0] = x[1] + np.sin(x[2]) * np.cos(x[3]) - np.exp(-x[1] * x[1])
        x[-1] = x[-2] + np.sin(x[-3]) * np.cos(x[3]) - np.exp(-x[1] * x[1])
    return x


@pytest.mark.parametrize(("program", "loops"), [
    (elementwise, 0), (stencil, 1), (light, 0), (libraries, 1), (nested, 4), (exits, 1),
    (by_list, 0),
])
def test_values_and_loops(program: Any, loops: int) -> None:
    compiled = fusec.jit(program)
    for _ in range(2):
        got, want = compiled(X.copy()), program(X.copy())
        got, want = (x if type(x) is tuple else (x,) for x in (got, want))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    found = [n for n in compiled.traces[0].graph.nodes if n.op == "Loop"]
    assert len(found) <= loops
    assert bool(found) == bool(loops)


def test_unrolled_elementwise_iterations_are_one_kernel() -> None:
    compiled = fusec.jit(elementwise)
    compiled(X)
    assert len(compiled.traces[0].kernels) == 1


def test_explain_names_heavy_loops_that_the_graph_refused() -> None:
    text = str(fusec.explain(by_list, X))
    assert "is unrolled, for it cannot be in the graph" in text
    assert "test_unrolling.py" in text


def test_arrays_stay_plain_when_an_attempt_at_a_loop_is_taken_back() -> None:
    def program(x):
        order = np.arange(40)
        names = [str(k) for k in range(40)]
        for k in range(40):
            order[k] = order[k] * 2 + len(names[k])
        return x[order[3]], [0.0, 1.0][int(order[0]) - 1]

    x = np.arange(100.0)
    assert fusec.jit(program)(x) == program(x)


def test_questions_about_many_changes_of_a_known_array_are_quick() -> None:
    def program(x):
        prime = np.ones(3000, dtype=bool)
        prime[:2] = False
        for i in range(2, 55):
            if prime[i]:
                prime[i * i:: i] = False
        return x + prime.sum()

    assert fusec.jit(program)(1.0) == program(1.0)


def started_again(z: Any, n: int) -> Any:
    w = np.ones(n)
    for v in z:
        w *= v
        if w.sum() > 0.4:
            w = np.ones(n)
    return w


def started_again_after_appends(z: Any) -> Any:
    kept = [z[0]]
    w = np.ones(5)
    for i, v in enumerate(z):
        w *= v
        if w.sum() > 0.4:
            w = np.ones(5) * i
    kept.append(w.sum())
    return kept


@pytest.mark.parametrize("count", [1, 3, 6, 7, 10, 16, 17, 40])
def test_what_is_refused_written_out_is_a_loop_of_the_graph(count: int) -> None:
    z = np.linspace(0.1, 1, count)
    np.testing.assert_allclose(fusec.jit(started_again)(z, 5), started_again(z, 5))
    np.testing.assert_allclose(fusec.jit(started_again_after_appends)(z),
                               started_again_after_appends(z))


def test_what_no_form_takes_is_refused_as_written_out() -> None:
    def function(x: Any) -> Any:
        kept = []
        for i in range(3):
            if x[i] > 0:
                kept.append(i)
        return kept

    with pytest.raises(fusec.errors.FusecError, match=r"list\.append"):
        fusec.jit(function)(np.ones(5))


def test_several_loops_that_cannot_be_written_out():
    """Each is found when those before it are in the graph."""
    def f(x):
        w, v = np.ones(3), np.ones(3)
        for t in x:
            w *= t
            if w.sum() > 1.0:
                w = np.ones(3)
        for t in x:
            v *= t + 1.0
            if v.sum() > 2.0:
                v = np.ones(3)
        return w, v

    compiled = fusec.jit(f)
    x = np.arange(8) * 7 % 5 - 1.5
    np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12)
