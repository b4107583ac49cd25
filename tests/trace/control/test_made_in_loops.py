"""Loops whose iterations make closures and lists of their own: each attempt to trace one of them
met others, and none was the last (nested loops of 10 with exits took minutes)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.control.attempts import Attempt

MOST = 60  # attempts; they were thousands


def adder(total: Any) -> Callable[[Any], Any]:
    def add(c: Any) -> Any:
        nonlocal total
        total = total + c
        return total

    return add


def closures(x: Any, s: Any) -> Any:
    t = 0.0
    for i in range(10):
        for c in x:
            if x[i] * c > s:
                break
            add = adder(c)
            add(1.0)
            t += add(x[i])
        if x[i] > s * 9:
            break
    return t


def lists(x: Any, s: Any) -> Any:
    t = 0.0
    for b in x:
        for c in x:
            if b * c > s:
                break
            items = [t, s]
            items[0] += 1.0
            if b > c:
                items[1] = 2.0
            t += items[1]
        if b > s * 9:
            break
    return t


def dicts_in_branches(x: Any, s: Any) -> Any:
    t = 0.0
    for b in x:
        found = {"a": b}
        for c in x:
            if c > s:
                found["a"] = c
        if found["a"] > 3:
            t += found["a"]
    return t


def closures_of_branches(x: Any, s: Any) -> Any:
    t = 0.0
    add = adder(1.0)
    for c in x:
        if c > s:
            other = adder(c)
            t += other(1.0)
        else:
            t += add(c)
    return t, add(0.0)


@pytest.mark.parametrize("program", [closures, lists, dicts_in_branches, closures_of_branches])
def test_attempts_settle(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    runs, run = [0], Attempt.run

    def counted(self: Attempt) -> Any:
        runs[0] += 1
        assert runs[0] <= MOST
        return run(self)

    monkeypatch.setattr(Attempt, "run", counted)
    jitted = fusec.jit(program)
    for factor in (1.0, -1.0, 4.0):
        x = np.arange(1.0, 11) / 3 * factor
        assert np.array_equal(jitted(x, 2.0), program(x, 2.0))


def test_a_closure_of_an_iteration_is_refused_after_the_loop() -> None:
    """Its variables are those of one iteration: the fuzzer met an internal error."""
    def program(x: Any, s: Any) -> Any:
        left = 3
        while left > 0 and s < 100.0:
            left -= 1
            add = adder(x[left])
            s = add(s)
        return s, add(1.0)

    with pytest.raises(fusec.errors.UnsupportedError) as refusal:
        fusec.jit(program)(np.arange(1.0, 11), 2.0)
    assert "using 'left' of an iteration after its loop" in str(refusal.value)
    assert "while left > 0" in str(refusal.value)
    assert "cure: bind what is needed later to a variable" in str(refusal.value)
