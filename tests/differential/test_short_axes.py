"""Reductions along a short last axis: every dtype, length and layout, and readers of results."""

from __future__ import annotations

import numpy as np
import pytest
from arrays import DTYPES, ordinary
from harness import check
from tolerance import EXACT, Ulp

import fusec

NEAR = Ulp(scale=8.0)
LENGTHS = (2, 3, 4, 7, 8, 9, 15, 16, 17)
LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "reversed": lambda a: a[::-1, ::-1],
    "columns": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "rows": lambda a: np.repeat(a, 3, axis=0)[::3],
    "one row": lambda a: np.broadcast_to(a[:1], a.shape),
    "one column": lambda a: np.broadcast_to(a[:, :1], a.shape),
}


def reductions(x):
    return (x.sum(axis=-1), x.prod(axis=-1), x.max(axis=-1), x.min(axis=-1), x.any(axis=-1),
            x.all(axis=-1), x.sum(axis=-1, keepdims=True) + x[:, :1])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [*DTYPES, "c8", "c16"])
def test_every_dtype_and_length(dtype, length):
    if np.dtype(dtype).kind == "c":
        x = ordinary("f8", 37, length) + 1j * ordinary("f8", 37, length, seed=1)
        check(lambda x: (x.real.sum(axis=-1), x.imag.sum(axis=-1)), x.astype(dtype), tolerance=NEAR)
        x = np.rint(x).astype(dtype)  # whole numbers: a complex sum has an order of its own
        check(lambda x: (x.sum(axis=-1), x.sum(axis=-1, keepdims=True) * x.real), x)
        return
    check(reductions, ordinary(dtype, 37, length), tolerance=NEAR)


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 64, 65, 1000])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_sum_has_numpy_s_bits_however_many_rows_there_are(dtype, length, rows):
    tolerance = EXACT if length <= 16 else NEAR
    check(lambda x: (x.sum(axis=-1), x.prod(axis=-1), x.mean(axis=-1)),
          ordinary(dtype, rows, length), tolerance=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("length", [2, 3, 4, 16])
@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
def test_layouts(dtype, length, layout):
    x = LAYOUTS[layout](ordinary(dtype, 40, length))
    check(reductions, x, tolerance=NEAR)
    check(lambda x: (np.exp(x - x.max(-1, keepdims=True)), x / np.sqrt((x * x).sum(-1))[:, None]),
          x, tolerance=NEAR)


@pytest.mark.parametrize("shape", [(4, 5, 3), (2, 3, 2, 2), (3, 3, 3), (1, 3), (0, 3), (4, 0, 3)])
def test_ranks(shape):
    x = ordinary("f8", *shape)
    check(lambda x: (x.sum(-1), x.max(-1), (x - x.mean(-1, keepdims=True)).std(-1)), x,
          tolerance=NEAR)
    check(lambda x: (x.sum((-2, -1)), x / (np.abs(x).sum((-2, -1), keepdims=True) + 1)), x,
          tolerance=NEAR)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [2, 3, 4, 8, 16])
def test_points_and_pairs(dtype, length):
    p, m = ordinary(dtype, 33, length), ordinary(dtype, 33)

    def forces(p, m):
        d = p[None] - p[:, None]
        inv = ((d * d).sum(-1) + 1.0) ** -1.5
        return (d * inv[..., None] * m[None, :, None]).sum(1)

    def others(p, m):
        d = p[:, None, :] - p[None, :5, :]
        r = np.linalg.norm(d, axis=-1)
        return (r.argmin(axis=1), r.min(axis=1), np.exp(-r).sum(axis=0),
                np.einsum("ij,ij->i", p, p), p @ np.eye(length, dtype=p.dtype),
                (p * np.tanh(m)[:, None]).mean(axis=0))

    check(forces, p, m, tolerance=Ulp(scale=64.0))
    check(others, p, m, tolerance=Ulp(scale=16.0))


def test_updates_in_place():
    def step(p, v, m):
        r = np.sqrt((p * p).sum(axis=-1, keepdims=True)) + 1
        v -= p / r**3 * m[:, None]
        p += v * 0.1
        p[:, 0] = np.abs(p).sum(-1)
        return p.max(axis=-1)

    check(step, ordinary("f8", 50, 3), ordinary("f8", 50, 3, seed=1), ordinary("f8", 50),
          tolerance=Ulp(scale=8.0))


def test_special_values():
    values = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]
    x = np.array(np.meshgrid(values, values, values)).reshape(3, -1).T.copy()
    check(lambda x: (x.sum(-1), x.prod(-1), x.mean(-1)), x)
    check(lambda x: (np.abs(x).max(-1), np.abs(x).min(-1), (x > 0).any(-1)), x)


def test_pieces_indices_and_loops():
    def program(p, index, n):
        table = np.concatenate([p[:5], p[5:] * 2])
        picked = table[index]
        stacked = np.stack([p[:, 0], np.sin(p[:, 1]), p[:, 2] ** 2], axis=-1)
        total = 0.0
        for i in range(n):
            total = total + np.sqrt((p * p[i]).sum(axis=-1)[0] + 50)
            p[i] = p[i] / (np.abs(p).sum(axis=-1)[i] + 1)
        return (picked.sum(-1), p[index[:, None], np.array([0, 2])].max(-1), stacked.sum(axis=-1),
                stacked / np.sqrt((stacked**2).sum(-1, keepdims=True)), total)

    check(program, ordinary("f8", 12, 3), np.array([3, 0, 11, -1]), 7, tolerance=Ulp(scale=64.0))


def test_a_bad_index_under_a_short_sum_is_found():
    def program(x, index):
        return x[index].sum(axis=-1)

    check(program, ordinary("f8", 10), np.array([[1, 2, 3], [4, 5, 10]]))
    check(program, ordinary("f8", 10), np.array([[1, 2, 3], [4, 5, 9]]))


def test_lengths_that_data_decides():
    def program(p, m):
        kept = p[m > 0]
        return kept / np.linalg.norm(kept, axis=-1)[:, None], kept.sum(axis=-1).max()

    check(program, ordinary("f8", 30, 3), ordinary("f8", 30), tolerance=Ulp(scale=8.0))


def test_strict_sums_have_the_same_bits():
    x = ordinary("f8", 100, 3)
    strict = fusec.jit(lambda x: np.sqrt((x * x).sum(-1)), fp="strict")
    np.testing.assert_array_equal(strict(x), np.sqrt((x * x).sum(-1)))


@pytest.mark.parametrize("write", [
    lambda m, k: m.__setitem__((k, k), 0.0), lambda m, k: m.__setitem__(np.s_[::2, ::2], 0.0),
])
def test_sums_of_what_is_written_at_indices_or_steps(write):
    def program(x, k):
        m = np.outer(x, x)
        write(m, k)
        return m.dot(x), m.T.sum(axis=1, keepdims=True), np.sqrt(m.sum(axis=1))[:, None] * m[:, :3]

    check(program, np.abs(ordinary("f8", 4)), np.arange(4), tolerance=NEAR)
