"""Kernels of one structure are lowered once; two that differ in anything lowering reads are two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.kernels import repeated_kernels

STEPS = 12


def lowered(monkeypatch: pytest.MonkeyPatch, f: Any, *args: Any) -> tuple[Any, int]:
    """The trace that the call makes, and how many kernels were lowered for it."""
    made: list[str] = []

    def lower(node: Any) -> Any:
        made.append(node.name)
        return original(node)

    original = repeated_kernels.lower
    monkeypatch.setattr(repeated_kernels, "lower", lower)
    function = fusec.jit(f)
    np.testing.assert_array_equal(function(*args), f(*args))
    (trace,) = function.traces
    return trace, len(made)


def test_steps_of_an_unrolled_loop_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(factors: list[np.ndarray], x: np.ndarray) -> np.ndarray:
        for factor in factors:
            x = factor @ x + 1.0
        return x

    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(3, 3)) for _ in range(STEPS)]
    trace, count = lowered(monkeypatch, f, factors, np.ones((3, 3)))
    assert len(trace.kernels) == STEPS and count == 1
    nests = {id(step.kernel.nests) for step in trace.build.call_plan.kernels}
    assert len(nests) == 1


def test_each_keeps_its_own_names_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        x = a @ x + 1.0
        x = a @ x + 1.0
        return a @ x

    trace, count = lowered(monkeypatch, f, np.eye(3) * 2, np.ones((3, 3)))
    first, second = trace.kernels
    assert count == 1 and first.name != second.name
    assert first.name in first.loops and second.name in second.loops
    assert first.lines != second.lines


@pytest.mark.parametrize(("one", "other"), [
    (0.0, -0.0), (1.5, 2.5), (np.nan, 1.0),
], ids=str)
def test_constants_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, one: float, other: float
) -> None:
    def f(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        y = a @ x * one
        return a @ (a @ y * other)

    lowered(monkeypatch, f, np.eye(3) * 2, np.ones((3, 3)))


def test_types_shapes_and_operations_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        p = a @ x + 1.0
        q = a @ (p - 1.0)
        r = a @ q[:, :2] + 1.0
        s = a @ np.exp(r) + np.float32(1)
        return a @ (s + s[::-1]) + 1.0

    trace, count = lowered(monkeypatch, f, np.eye(3) * 2, np.ones((3, 3)))
    kernels = [step.kernel for step in trace.build.call_plan.kernels]
    different = {(k.nests, k.params, *((b.dtype, b.shape) for b in k.buffers)) for k in kernels}
    assert count == len(different) == len(kernels) == 4


def test_operands_in_another_order_are_another_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(a: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        p, q = a @ x, a @ y
        r = a @ (p - q)
        return a @ (q - r) + a @ (r - q)

    lowered(monkeypatch, f, np.eye(3) * 2, np.ones((3, 3)), np.full((3, 3), 3.0))
