"""A sum has the same bits whatever it is fused with."""

from __future__ import annotations

import ctypes
import mmap

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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_are_summed_together_sum_like_one(dtype):
    """Of rows of little arithmetic several are summed at once, the last ones alone."""
    summed = fusec.jit(lambda x, v: (x * v).sum(1) + 1)
    rng = np.random.default_rng(4)
    for length in (17, 47, 256, 257, 513):
        x, v = rng.standard_normal((7, length)).astype(dtype), rng.random(length).astype(dtype)
        x[2, length // 2:] = np.inf  # what lies behind a row is not read as part of it
        together = summed(x, v)
        for row, total in zip(x, together, strict=True):
            np.testing.assert_array_equal(summed(row[None], v), total)
        tolerance = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(
            together, (x * v).sum(1) + 1, rtol=tolerance, atol=length * tolerance)


def test_masks_read_nothing_behind_an_array():
    """The last row ends where its page does."""
    size = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * size)
    whole = np.frombuffer(memory, np.float64)
    address = whole.ctypes.data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + size), size, 0) == 0
    x = whole[size // 8 - 6 * 21:size // 8].reshape(6, 21)
    x[:] = np.arange(126.0).reshape(6, 21)
    summed = fusec.jit(lambda x: (x.sum(1), x.max(1)))
    for total, expected in zip(summed(x), (x.sum(1), x.max(1)), strict=True):
        np.testing.assert_array_equal(total, expected)
