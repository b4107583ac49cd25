"""ADBench's objectives: gradients and Jacobians against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.bench.gradients import adbench

from .differences import differences

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("f", "args", "count"), [
    (adbench.mixture, adbench.mixture_args(RNG, 7, 3, 4), 4),
    (adbench.memory, adbench.memory_args(RNG, 6, 2, 5), 4),
])
def test_gradients(f: Callable[..., Any], args: Any, count: int) -> None:
    value, gradients = fusec.value_and_grad(f, tuple(range(count)))(*args)
    assert value == pytest.approx(f(*args), rel=1e-13)
    for number, gradient in enumerate(gradients):
        np.testing.assert_allclose(gradient, differences(f, args, number), rtol=1e-7, atol=1e-8)


def test_the_jacobian_of_a_pose() -> None:
    args = adbench.skin_args(RNG, 6)
    jacobian = fusec.jacobian(adbench.skin)(*args)
    for k in range(3):
        expected = differences(lambda *a, k=k: adbench.skin(*a)[2, k], args)
        np.testing.assert_allclose(jacobian[2, k], expected, rtol=1e-7, atol=1e-9)


def test_the_blocks_of_reprojections() -> None:
    args = adbench.reprojection_args(RNG, 5, 3, 4)
    blocks = adbench.reprojection_blocks(*args)
    for number, block in enumerate(blocks):
        for k in range(2):
            expected = differences(
                lambda *a, k=k: adbench.reprojection(*a)[:, k].sum(), args, number)
            np.testing.assert_allclose(block[:, k], expected, rtol=1e-7, atol=1e-9)
