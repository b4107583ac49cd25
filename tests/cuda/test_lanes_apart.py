"""Elementwise kernels whose lanes are a warp apart, and tiles: all addresses and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import pytest

import fusec
from fusec.codegen.cuda.kernels.elementwise_kernels import are_lanes_apart
from fusec.codegen.kernels.specialise import LoopForm, specialise

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)


def five_points(a: Any) -> Any:
    return a[1:-1, 1:-1] + 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def difference(a: Any) -> Any:
    return a[..., 1:] - a[..., :-1] * np.arange(a.shape[-1] - 1)


def form_of(function: Any, x: np.ndarray) -> LoopForm:
    (kernel,) = fusec.jit(function).lower(x).kernels
    strides = [place.strides for place in kernel.step.places]
    return specialise(kernel.step.kernel, kernel.step.kernel.nests[0], strides)


@pytest.mark.parametrize(("columns", "apart"), [
    (100, False), (130, True), (131, False), (1027, True), (1026 + 33, True)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results_are_numpys(columns: int, apart: bool, dtype: str) -> None:
    x = RNG.normal(size=(5, columns)).astype(dtype)
    if dtype == "f4":
        assert are_lanes_apart(form_of(five_points, x)) == apart
    for program in (five_points, difference, lambda a: difference(a.ravel())):
        got, want = fusec.jit(program, device=HOST)(x), program(x)
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("shape", [(16, 16), (64, 96), (33, 70), (3, 31, 65)], ids=str)
def test_tiles(shape: tuple[int, ...]) -> None:
    """Loads and stores along both loops, operands along none, and an update in place."""
    def programs(x: Any, y: Any) -> Any:
        z = np.swapaxes(y, -1, -2)
        return x + 2 * z, (x * z + np.arange(x.shape[-1])), (x > z).sum()

    def in_place(x: Any, y: Any) -> Any:
        x += np.swapaxes(y, -1, -2)
        return x

    x = RNG.normal(size=shape).astype("f4")
    y = RNG.normal(size=(*shape[:-2], shape[-1], shape[-2])).astype("f4")
    for program in (programs, in_place):
        got, want = fusec.jit(program, device=HOST)(x.copy(), y), program(x.copy(), y)
        for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
