"""A sum has the same bits whatever it is fused with."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

LENGTHS = (1, 3, 8, 15, 16, 17, 33, 100, 255, 256, 257, 511, 513, 1003)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fused_sum_is_the_sum_alone(dtype):
    exp = fusec.jit(lambda x: np.exp(x))
    fused = fusec.jit(lambda x: np.exp(x).sum(1))
    alone = fusec.jit(lambda e: e.sum(1))
    crowded = fusec.jit(lambda e: (e.sum(1), (e * e).max(1), np.tanh(e).min(1)))
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        x = rng.standard_normal((5, length)).astype(dtype)
        e = exp(x)
        np.testing.assert_array_equal(fused(x), alone(e))
        np.testing.assert_array_equal(crowded(e)[0], alone(e))


def test_a_float32_sum_beside_float64_values_keeps_its_order():
    alone = fusec.jit(lambda e: e.sum(1))
    beside = fusec.jit(lambda e, w: ((e.astype(np.float64) * w).max(1), e.sum(1)))
    e = np.random.default_rng(1).random((5, 1003)).astype(np.float32)
    np.testing.assert_array_equal(beside(e, np.linspace(0, 1, 1003))[1], alone(e))


def test_strided_and_contiguous_rows_sum_alike():
    alone = fusec.jit(lambda e: e.sum(1))
    wide = np.random.default_rng(2).random((5, 2006))
    np.testing.assert_array_equal(alone(wide[:, ::2]), alone(wide[:, ::2].copy()))


def test_a_vector_sums_like_a_row():
    alone = fusec.jit(lambda e: e.sum(-1))
    e = np.random.default_rng(3).random(1003)
    assert alone(e) == alone(e[None, :])[0] == alone(np.stack([e, e]))[1]
