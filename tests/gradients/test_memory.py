"""Loops that may keep less than they need: segments run again, and the gradient is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients import heat_memory
from gradients.differences import differences
from gradients.test_control_flow import called, rows_of_any_length, triangle

import fusec
from fusec.passes.gradient.loops.segments import planned

X = np.random.default_rng(5).uniform(0.5, 1.5, 20)


def heat(x: Any, steps: int = 23) -> Any:
    u = np.zeros((6, 7)) + x[:7]
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.05 * x[7] * u[1:-1, 1:-1] * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def several_states(x: Any) -> Any:
    y, s, position = x.copy(), 1.0, 3
    for k in range(5, 35, 3):
        if y[k % 20] > 1.0:
            y = y * s * 0.75
        else:
            y = np.sin(y) * x[k % 7]
            y[2:] *= s
        s = s * y[position] + 0.25
        position = position + 2 if position < 10 else 3
    return (y * x).sum() * s


def loops_in_a_loop(x: Any) -> Any:
    y = x.copy()
    for i in range(13):
        for _ in range(11):
            y[1:] = 0.5 * y[:-1] * y[1:] + 0.25 * y[1:]
        y[i] = y[i + 1] * y[i] + x[i] + 0.125
    return (y * y * y).sum()


def two_loops(x: Any) -> Any:
    y = x.copy()
    for _ in range(9):
        y = y * x - 0.25 * y
    for _ in range(9):
        y = y * y * 0.5 + x
    return y.sum()


def drawing_by_key(x: Any) -> Any:
    key, y = fusec.random.key(7), x.copy()
    for _ in range(30):
        key, use = fusec.random.split(key)
        y = y * (0.9 + 0.1 * fusec.random.normal(use, (20,))) * x + 0.01
    return (y * y).sum()


PROGRAMS = [drawing_by_key, heat, several_states, loops_in_a_loop, two_loops, triangle,
            rows_of_any_length, called]


@pytest.mark.parametrize("budget", [0, 1000])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_gradient_is_the_same(
    program: Callable[..., Any], budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fusec.config, "verify", True)
    expected = fusec.grad(program)(X.copy())
    monkeypatch.setattr(fusec.config, "gradient_memory", budget)
    value, gradient = fusec.value_and_grad(program)(X.copy())
    assert value == pytest.approx(program(X.copy()), rel=1e-13)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12 * abs(expected).max())


def test_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusec.config, "gradient_memory", 1500)
    v = np.cos(np.arange(20.0))
    gradient = fusec.grad(several_states)
    expected = differences(lambda x: gradient(x) @ v, (X,))
    second = fusec.grad(lambda x: (fusec.grad(several_states)(x) * v).sum())(X.copy())
    np.testing.assert_allclose(second, expected, rtol=1e-6, atol=1e-6)
    _, along = fusec.jvp(gradient, (X.copy(),), (v,))
    np.testing.assert_allclose(along, expected, rtol=1e-6, atol=1e-6)


def test_trips_that_the_call_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def grown(x: Any, steps: Any) -> Any:
        return heat(x, steps)

    expected = [fusec.grad(heat)(X.copy(), n) for n in (23, 40, 1, 0)]
    monkeypatch.setattr(fusec.config, "gradient_memory", 1500)
    gradient = fusec.grad(grown)
    for n, right in zip((23, 40, 1, 0), expected, strict=True):
        np.testing.assert_allclose(gradient(X.copy(), n), right, rtol=1e-12, atol=1e-13)


def test_explain_says_what_is_kept_and_what_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(fusec.explain(fusec.grad(loops_in_a_loop), X.copy()))
    assert "of 13 iterations" in text and "again" not in text
    monkeypatch.setattr(fusec.config, "gradient_memory", 1500)
    text = str(fusec.explain(fusec.grad(loops_in_a_loop), X.copy()))
    assert "of 13 iterations, and may keep 1.5 kB (config.gradient_memory): it keeps" in text
    assert "1.28 kB, the beginning of each 4 iterations, and computes the rest again" in text


def test_draws_from_a_stream_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawing(x: Any, rng: Any) -> Any:
        y = x.copy()
        for i in range(40):
            if rng.random() < 0.5:
                y = np.cos(y) * (1 + rng.random(20))
            else:
                y[i % 20] = y[i % 20 - 1] * rng.normal()
        return (y * y).sum()

    expected = differences(lambda x: drawing(x, np.random.default_rng(3)), (X,))
    for budget in (1 << 30, 0):
        monkeypatch.setattr(fusec.config, "gradient_memory", budget)
        rng, plain = np.random.default_rng(3), np.random.default_rng(3)
        drawing(X.copy(), plain)
        np.testing.assert_allclose(fusec.grad(drawing)(X.copy(), rng), expected, rtol=1e-7,
                                   atol=1e-9)
        assert rng.random() == plain.random()  # the stream went on as in a plain call


def test_the_script_of_the_heat_equation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fusec.config, "gradient_memory", 1 << 30)  # which the script sets
    assert heat_memory.main(60, 12, 20_000) == 0
    assert "beginning of each 9 iterations" in capsys.readouterr().out


def test_what_prints_does_not_run_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printing(x: Any) -> Any:
        s = 1.0
        for i in range(100):
            fusec.print("step", i)
            s = s * x[i % 20] * 0.9
        return s

    monkeypatch.setattr(fusec.config, "gradient_memory", 0)
    gradient = fusec.grad(printing)
    np.testing.assert_allclose(gradient(X), 5 * X.prod() ** 5 * 0.9 ** 100 / X)
    assert capsys.readouterr().out == "".join(f"step {i}\n" for i in range(100))
    assert "does not run again" in str(fusec.explain(gradient, X))


@pytest.mark.parametrize(("trips", "budget", "levels"), [
    (100, 100 * 8, 0), (100, 20 * 8, 1), (100, 15 * 8, 2), (10_000, 200 * 8, 1),
    (10_000, 95 * 8, 2), (10_000, 41 * 8, 3), (1, 0, 0)])
def test_plans_keep_what_they_may_in_the_fewest_runs(
    trips: int, budget: int, levels: int
) -> None:
    plan, kept = planned(trips, 8, 8, budget), 0
    assert (0 if plan is None else len(plan.lengths)) == levels
    for length in () if plan is None else plan.lengths:
        kept, trips = kept + 8 * -(-trips // length), length
    assert plan is None or plan.kept == kept + 8 * trips <= budget


def recorded(u: Any, steps: Any) -> Any:
    kept = np.zeros((100, u.size))
    for k in range(steps):
        kept[k] = u
        u = u + 0.01 * np.sin(u)
    return (kept ** 2).sum()


def notes_of(gradient: Any, *args: Any) -> str:
    return "\n".join(line for line in str(fusec.explain(gradient, *args)).splitlines()
                     if "gradients:" in line)


def test_a_record_of_all_iterations_is_not_kept_twice() -> None:
    u = np.linspace(0.5, 1, 50)
    want = fusec.grad(recorded)(u, 100)
    with fusec.config.override(gradient_memory=5_000):
        gradient = fusec.grad(recorded)
        np.testing.assert_array_equal(gradient(u, 100), want)
        assert "more than config.gradient_memory" in notes_of(gradient, u, 100)


def test_it_is_said_of_loops_that_data_end() -> None:
    def program(u: Any) -> Any:
        while u.sum() < 100:
            u = u * u + 1.5
        return u.sum()

    assert "keeps 400 bytes of each iteration, whatever" in notes_of(
        fusec.grad(program), np.linspace(0.5, 1, 50))
