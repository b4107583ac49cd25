"""Sums of the way back are added up box by box, in the kernels that add up cotangents."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends

STEPS = 30


def plate(u: np.ndarray, r: float) -> np.ndarray:
    """A stencil whose factor is a number: its cotangent is a sum over the inside."""
    for _ in range(STEPS):
        new = u.copy()
        new[1:-1, 1:-1] += r * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
                                - 4.0 * u[1:-1, 1:-1])
        new[0, :], new[:, -1] = u[0, :], 0.5
        u = new
    return (u ** 2 * np.cos(np.arange(u.size)).reshape(u.shape)).sum()


def upwind(u: np.ndarray, c: float) -> np.ndarray:
    """A predictor and a corrector: pads that are small steps from one array."""
    for _ in range(STEPS):
        flux = 0.5 * u * u
        guess = u.copy()
        guess[:-1] = u[:-1] - c * (flux[1:] - flux[:-1])
        flux = 0.5 * guess * guess
        new = u.copy()
        new[1:-1] = 0.5 * (u[1:-1] + guess[1:-1] - c * (flux[1:-1] - flux[:-2]))
        u = new
    return (u ** 3).sum()


def spread(u: np.ndarray, k: float) -> np.ndarray:
    """Three axes, and two numbers whose sums are of different parts."""
    for _ in range(STEPS):
        inside = u[1:-1, 1:-1, 1:-1]
        inside += k * (u[2:, 1:-1, 1:-1] - 2 * inside + u[:-2, 1:-1, 1:-1])
        u[:, 0] = k * k * u[:, 1]
    return (u ** 2).sum()


CASES = {
    "plate": (plate, (np.random.default_rng(1).random((20, 25)), 0.1)),
    "upwind": (upwind, (1 + 0.3 * np.random.default_rng(2).random(41), 0.1)),
    "spread": (spread, (np.random.default_rng(3).random((20, 21, 22)), 0.1)),
}
each = pytest.mark.parametrize("case", CASES)


def gradients(function: Any, args: Any, using: str) -> Any:
    with backends.using(using):
        return fusec.grad(function, (0, 1))(args[0].copy(), args[1])


@each
def test_gradients_are_those_of_differences(case: str) -> None:
    function, args = CASES[case]
    fusec.check_grads(function, args, order=1)


@each
@pytest.mark.parametrize("using", ["reference", "cudahost"])
def test_other_backends_add_up_the_same_parts(case: str, using: str) -> None:
    function, args = CASES[case]
    for got, want in zip(gradients(function, args, using), gradients(function, args, "cpu"),
                         strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-14)


def text_of_way_back(case: str) -> str:
    function, args = CASES[case]
    *_, back = fusec.grad(function, (0, 1)).concrete(args[0].copy(), args[1]).control
    return str(back.structured)


def test_one_kernel_reads_what_the_cotangent_of_a_plate_needs() -> None:
    """It adds up the number's as well: none goes over the inside, or strips of it, by itself."""
    text = text_of_way_back("plate")
    (run,) = re.findall("run fused.*", text)
    assert " into " in run, text


def test_small_steps_from_one_array_are_not_stored() -> None:
    """Of the predictor: it, and the cotangent of its flux."""
    text = text_of_way_back("upwind")
    assert text.count("= temp") <= 2, text
