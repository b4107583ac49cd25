"""Results made of many parts: the compile time of each does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.ops.regions import cones
from fusec.passes.fusion import fusion

X = np.linspace(0.5, 1.5, 6)


def stacked(x, table):
    return np.array([(x * t).sum() for t in table])


def written(x, table):
    out = np.empty((len(table), 6))
    for i, t in enumerate(table):
        out[i] = x * t
    return out


def steps(x, table):
    states, doubled = np.empty((len(table), 6)), np.empty((len(table), 6))
    for i, t in enumerate(table):
        x = x * 0.5 + t
        states[i] = x
        doubled[i] = x * 2
    return states, doubled


def rows(count: int) -> list[np.ndarray]:
    return [np.arange(6.0) * k for k in range(count)]


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    calls: list[None] = []
    function = getattr(module, name)

    def counting(*args: Any) -> Any:
        calls.append(None)
        return function(*args)

    monkeypatch.setattr(module, name, counting)
    return calls


@pytest.mark.parametrize("f", [stacked, written])
def test_a_part_is_looked_at_alone(f, monkeypatch):
    shifts = counted(monkeypatch, cones, "shift")
    costs = []
    for count in (40, 80, 160):
        shifts.clear()
        table = rows(count)
        np.testing.assert_allclose(fusec.jit(f)(X, table), f(X, table), rtol=1e-14)
        costs.append(len(shifts))
    assert costs[2] - costs[1] < 2.5 * (costs[1] - costs[0])


def test_values_that_kernels_share_are_stored_in_few_rounds(monkeypatch):
    rounds = counted(monkeypatch, fusion, "group")
    table = rows(120)
    for got, want in zip(fusec.jit(steps)(X, table), steps(X, table), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    assert 2 <= len(rounds) <= 6
