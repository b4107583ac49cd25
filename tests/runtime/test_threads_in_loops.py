"""Calls in several threads of plans that run step by step: each has blocks and cells of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fusec


@fusec.vectorize
def inverse(a: float) -> float:
    """It may raise, so a loop over it runs from Python."""
    return 1.0 / a


def sums(x: np.ndarray, count: int) -> np.ndarray:
    total = np.zeros(3)
    for k in range(count):
        total = total * 0.5 + inverse(x).sum() + k
    return total


def test_threads_in_one_loop() -> None:
    compiled = fusec.jit(sums)
    inputs = [1 + np.random.default_rng(n).random(50) for n in range(8)]
    compiled(inputs[0], 400)
    compiled(inputs[0], 401)  # the count is a value of the run from now on
    assert not compiled.concrete(inputs[0], 400).control[0].is_native
    wanted = [compiled(x, 400) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = pool.map(lambda x: compiled(x, 400), inputs)
            for got, want in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(got, want)
