"""Borders and insides set in turn: NumPy's bits, and one version of an array in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bordered import (
    PROGRAMS,
    arguments,
    framed,
    kept_additions,
    overwritten,
    reaction,
    staggered,
)

import fusec
from fusec.codegen import backends

each = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def assert_as_numpy(call: Any, program: Any, dx: float, steps: int) -> None:
    ours, theirs = arguments(), arguments()
    for got, want in zip(call(*ours, dx, steps), program(*theirs, dx, steps), strict=True):
        if np.ndim(want):
            np.testing.assert_array_equal(got, want)
        else:  # a sum
            np.testing.assert_allclose(got, want, rtol=1e-13)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(got, want)


@each
def test_bits_and_arguments(program: Any) -> None:
    jitted = fusec.jit(program, fp="strict")
    for steps in (0, 1, 2, 5):
        assert_as_numpy(jitted, program, 0.7, steps)


@each
def test_on_a_cuda_device(program: Any) -> None:
    with backends.using("cudahost"):
        jitted = fusec.jit(program, fp="strict")
        for steps in (0, 1, 4):
            assert_as_numpy(jitted, program, 0.7, steps)


@each
def test_gradients(program: Any) -> None:
    def total(h: Any, u: Any, dx: Any) -> Any:
        value = 0.0
        for k, part in enumerate(program(h, u, dx, 4)):
            part = np.asarray(part)
            value = value + (part * np.cos(k + np.arange(part.size)).reshape(part.shape)).sum()
        return value

    fusec.check_grads(total, (*arguments(), 0.7), order=1)


def body(program: Any, steps: int = 40) -> str:
    """The statements of the program's loop."""
    (control,) = fusec.jit(program).concrete(*arguments(), 0.7, steps).control
    return str(control.structured).partition("loop:")[2]


def test_slices_read_the_newest_version() -> None:
    """One array for ``u``, though ``u[:-1]`` does not reach the border that was set last."""
    assert "temp" not in body(staggered)


def test_a_part_is_computed_in_its_frame() -> None:
    """``inside`` lies in the array that has zeros around it: 15 numbers, of which 13 are its."""
    text = body(framed)
    assert "+ 8: f64[13 by 8]" in text and "of 104 bytes" not in text, text


def test_what_is_overwritten_is_not_computed() -> None:
    graph = fusec.jit(overwritten).trace(*arguments(), 0.7, 40).optimize().graph
    loop = next(node for node in graph.nodes if node.op == "Loop")
    ops = [node.op for node in loop.attrs["body"].nodes]
    assert "Mul" not in ops and "Reserve" not in ops, ops


def test_what_is_kept_is_computed_with_what_it_is_added_to() -> None:
    """One kernel for both, over the inside, and one for the border."""
    assert body(kept_additions).count("run ") == 2


def test_sums_of_the_way_back_are_computed_with_the_cotangents() -> None:
    def total(h: Any, u: Any, dx: Any) -> Any:
        a, b = reaction(h, u, dx, 40)
        return (a * b).sum()

    *_, back = fusec.grad(total, (0, 1, 2)).concrete(*arguments(24), 0.7).control
    *_, last = (line for line in str(back.structured).splitlines() if " = run " in line)
    assert "into" in last, str(back.structured)
