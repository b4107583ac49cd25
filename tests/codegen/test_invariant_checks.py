"""Checks that every iteration makes of the same numbers are made before the loop, where nobody can
tell the difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends


def after_a_write(u: Any, dx: Any, n: Any) -> Any:
    for _ in range(n):
        u[0] += 1
        u[1:-1] *= 0.5 / dx
    return u.sum()


def first(u: Any, dx: Any, n: Any) -> Any:
    for _ in range(n):
        c = 2.0 / dx
        u[1:-1] = u[1:-1] * c + 1.0 / dx
    return u.sum()


def under_a_condition(u: Any, dx: Any, n: Any) -> Any:
    i = 0
    while i < n and u[0] < 100:
        u[1:-1] = u[1:-1] * (2.0 / dx) + 1
        i += 1
    return u.sum()


def in_the_inner_loop(u: Any, dx: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        u[i % 3] += 1
        for _ in range(i):
            s += 1.0 / dx
            u[4] += s
    return s, u.sum()


def in_a_branch(u: Any, dx: Any, n: Any) -> Any:
    for i in range(n):
        if u[i] > 2.5:
            u[0] = 1.0 / dx
        u[1] = 2.0 / dx
    return u.sum()


def of_numbers(u: Any, dx: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i / dx
    return s


def of_a_carried_number(u: Any, dx: Any, n: Any) -> Any:
    for _ in range(n):
        u[1:] += 1.0 / dx
        dx = dx - 0.5
    return u.sum(), dx


def after_an_empty_extremum(u: Any, dx: Any, n: Any) -> Any:
    s = u[0]
    for i in range(n):
        s += u[u > i + 3 + 2 * n].max() + 1.0 / dx
    return s


PROGRAMS = (after_a_write, first, under_a_condition, in_the_inner_loop, in_a_branch, of_numbers,
            of_a_carried_number, after_an_empty_extremum)


def outcome(call: Any, dx: float, steps: int) -> tuple[Any, ...]:
    """Its result, and its array then, or its exception."""
    u = np.arange(7.0)
    try:
        return repr(call(u, dx, steps)), u.tolist()
    except (ZeroDivisionError, ValueError) as error:
        return (str(error),)


@pytest.mark.parametrize("device", ["cpu", "cudahost"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_errors_come_when_they_do_in_python(program: Any, device: str) -> None:
    with backends.using(device):
        jitted = fusec.jit(program)
        for dx in (0.5, 0.0, 2.0):
            for steps in (0, 1, 4):
                assert outcome(jitted, dx, steps) == outcome(program, dx, steps), (dx, steps)


def test_a_test_that_prints_does_so_as_often_as_in_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def told(u: Any, dx: Any, n: Any) -> Any:
        i = 0
        while is_less(i, n):
            u[1:] += 1.0 / dx
            i += 1
        return u.sum()

    def is_less(i: Any, n: Any) -> Any:
        fusec.print("asked")
        return i < n

    said = []
    for call in (told, fusec.jit(told)):
        call(np.arange(7.0), 0.5, 40)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_the_check_stands_before_the_loop() -> None:
    (control,) = fusec.jit(first).concrete(np.arange(7.0), 0.5, 40).control
    before, _, body = str(control.structured).partition("loop:")
    assert "check" in before and "check" not in body.partition("exit 0:")[0]
