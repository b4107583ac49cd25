"""Loops that keep an entry for each iteration compute it where it is kept: same bits as NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kept_entries import PROGRAMS, arguments, results, states

import fusec
from fusec.codegen import backends


def start(size: int = 7) -> np.ndarray:
    return np.random.default_rng(5).random(size)


def assert_same(got: Any, want: Any) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_kept_is_what_numpy_keeps(program: Any) -> None:
    jitted = fusec.jit(program, fp="strict")
    for steps in (0, 1, 2, 5, 33, 40):
        assert_same(jitted(start(), steps), program(start(), steps))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_on_a_cuda_device(program: Any) -> None:
    with backends.using("cudahost"):
        jitted = fusec.jit(program, fp="strict")
        for steps in (0, 1, 5, 33):
            assert_same(jitted(start(), steps), program(start(), steps))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_of_what_is_kept(program: Any) -> None:
    def total(u: Any) -> Any:
        return sum((np.abs(part) ** 2).sum() for part in program(u * 1.0, 30)
                   if isinstance(part, np.ndarray) and part.dtype.char in "dD")

    fusec.check_grads(total, (start(),), order=1)


def test_arguments() -> None:
    jitted, want = fusec.jit(arguments, fp="strict"), [np.zeros((9, 7)), start()]
    got = [np.zeros((9, 7)), start()]
    for steps in (1, 9, 0, 4):
        jitted(*got, steps)
        arguments(*want, steps)
        assert_same(got, want)


def loop_of(program: Any, *args: Any) -> str:
    """The statements of its only loop, from the loop on."""
    (control,) = fusec.jit(program).concrete(*args).control
    return str(control.structured).partition("loop:")[2]


def test_a_state_is_copied_once() -> None:
    body = loop_of(states, start(), 40).partition("\n  r")[0]
    assert body.count("copy") == 1 and "else:\n      copy" in body, body
    assert body.count("point") == 3, body


def test_computed_values_are_not_copied() -> None:
    body = loop_of(results, start(), 40).partition("\n  r")[0]
    assert body.count("copy (m") == 1, body  # of the next state, which is kept, too
