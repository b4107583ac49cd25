"""Masks whose selected elements go back to their places or are summed: a choice, no indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, ordinary
from harness import check
from tolerance import Ulp

import fusec

RNG = np.random.default_rng(11)
CLOSE = Ulp(ulp=64, scale=1.0)


def in_place(x: Any) -> Any:
    x[x > 0] -= 3
    x[x < -1] *= 2
    return x


def at_integers(x: Any, y: Any, i: Any) -> Any:
    nearer = y[i] < x[i]
    x[i, nearer] = y[i][nearer]
    x[-1, y[0] > 0.5] = i
    x[0, nearer] += np.sqrt(np.abs(y[1]))[nearer]
    return x


def rows(x: Any) -> Any:
    length = np.hypot(x[:, 0], x[:, 1])
    long = length > 1
    x[long] /= length[long][:, np.newaxis]
    x[~long] = [1, 2]
    return x


def planes(x: Any, m: Any) -> Any:
    x[m] = 2 * x[m] + 1
    x[m] = np.arange(x.shape[2])
    x[1, m[1]] = x[0][m[1]]
    return x


def through_views(x: Any, m: Any) -> Any:
    x[::2][m[::2]] += 10
    x.T[m.T] *= 2
    return x


def after_slices(x: Any, m: Any) -> Any:
    """Of each plane the same elements: read, in another order, and written."""
    bounced = x[:, m[0]][::1][[1, 0]]
    x *= 0.5
    x[:, m[0]] = bounced
    x[:, m[1]] += np.abs(x[:, m[1]]) + x[0, m[1]]
    x[1:, m[0]] = 7
    x[::-1, m[0]] *= x[0, m[0]]
    return x, bounced


def last_axis(x: Any, m: Any, rows: Any) -> Any:
    """A mask of the last axis, and one that an axis follows; values of one row."""
    x[:, :, m[0]] = 2 * x[:, :, m[0]] + x[:, :1, m[0]]
    x[:, rows] -= x[:, rows] * x[:, rows] + x[0, rows]
    x[0:1, 1:3, m[1]] = x[1:, :2, m[1]]
    x[:, :, m[2]] = x[0, 0, m[2]]
    return x, x[:, rows], x[::-1, ::2, m[1]]


def old_values(x: Any, m: Any) -> Any:
    taken = x[m]
    x += 1
    x[m] = taken + x[m]
    return x, taken


def other_masks(x: Any, m: Any) -> Any:
    x[m] = x[np.roll(m, 1)]
    x[m] += x[~m].sum()
    return x


def in_a_loop(x: Any, w: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            shorter = x[i] + w[j] < x[j]
            x[j, shorter] = (x[i] + w[j])[shorter]
    return x


def summed(x: Any, m: Any) -> Any:
    v = x[m]
    return (v.sum(), (v * 2).sum(), v.mean(), (v > 0).sum(), np.abs(v).mean(), v.sum(keepdims=True),
            np.add.reduce(v), x[x > 1e9].sum(), v)


def summed_rows(x: Any, m: Any) -> Any:
    v = x[m]
    return (v.sum(axis=0), v.mean(axis=0), v.sum(), v.mean(), v.sum(axis=1), v.mean(axis=(0, 1)),
            (v * x[m, 0][:, None]).sum(axis=0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = ordinary(dtype, 37)
    if dtype != "?":
        check(in_place, x)
    check(summed, x, RNG.random(37) < 0.4, tolerance=CLOSE)


@pytest.mark.parametrize("program", [in_place, summed, through_views, old_values])
def test_matrices(program: Any) -> None:
    x = ordinary("f8", 9, 12)
    for order in (x, x.T, x[::-1, ::2], np.asfortranarray(x)):
        masks = [] if program is in_place else [RNG.random(order.shape) < 0.5]
        check(program, order.copy(order="K"), *masks, tolerance=CLOSE)


def test_rows_and_planes() -> None:
    check(rows, ordinary("f8", 40, 2))
    check(summed_rows, ordinary("f8", 40, 3), RNG.random(40) < 0.5, tolerance=CLOSE)
    check(planes, ordinary("f8", 4, 5, 3), RNG.random((4, 5)) < 0.5)


def test_after_integers() -> None:
    x, y = ordinary("f8", 6, 9), ordinary("f4", 6, 9)
    check(at_integers, x, y, 2)
    check(at_integers, x, y, -3)
    check(in_a_loop, ordinary("f8", 6, 6), ordinary("f8", 6))


@pytest.mark.parametrize("share", [0.5, 0.0, 1.1])
def test_after_slices(share: float) -> None:
    for x in (ordinary("f8", 2, 4, 5), ordinary("f4", 2, 4, 5),
              ordinary("f8", 4, 2, 5).swapaxes(0, 1)):
        check(after_slices, x.copy(order="K"), RNG.random((2, 4, 5)) < share)
        masks = RNG.random((3, 5)) < share, RNG.random(4) < share
        check(last_axis, x.copy(order="K"), *masks, tolerance=CLOSE)  # a*a + b is rounded once
        exact = fusec.jit(last_axis, fp="strict")(x.copy(order="K"), *masks)
        for result, plain in zip(exact, last_axis(x.copy(order="K"), *masks), strict=True):
            np.testing.assert_array_equal(result, plain)
    check(streamed, ordinary("f8", 3, 4, 5), RNG.random((4, 5)) < share)


def streamed(f: Any, obstacle: Any) -> Any:
    for _ in range(40):
        bounced = f[:, obstacle][[0, 2, 1]]
        f[1] = np.roll(f[1], 1, axis=0) * 0.5
        f[:, obstacle] = bounced
    return f


@pytest.mark.one_device
def test_a_loop_with_masks_after_slices_is_native() -> None:
    compiled = fusec.jit(streamed)
    compiled(ordinary("f8", 3, 40, 5), RNG.random((40, 5)) < 0.5)
    assert [c.is_native for c in compiled.traces[0].control] == [True]


def test_a_mask_of_another_shape_raises_as_numpy() -> None:
    check(lambda x, m: x[:, m], ordinary("f8", 3, 4, 5), np.ones((5, 4), bool))
    check(after_slices, ordinary("f8", 2, 4, 5), np.ones((2, 4, 4), bool))


def test_all_or_nothing_selected() -> None:
    x = ordinary("f8", 8, 3)
    for mask in (np.zeros(8, bool), np.ones(8, bool)):
        check(summed_rows, x, mask, tolerance=CLOSE)
        check(old_values, x, mask)


def test_other_masks_and_sizes_go_the_ordinary_way() -> None:
    check(other_masks, ordinary("f8", 10), np.arange(10) % 3 == 0, tolerance=CLOSE)


def test_what_is_left_out_may_be_anything() -> None:
    x = np.array([1.0, np.nan, np.inf, -0.0, 0.0, 4.0])
    check(lambda x: x[np.isfinite(x)].sum(), x)
    check(lambda x: x[x == 0].sum(), x)
    check(lambda x: (1 / x)[x != 0].sum(), x)
    x = np.array([6, 0, 3, 0])
    check(lambda x: (12 // x)[x > 0].sum(), x)


def test_wrong_sizes_raise_as_numpy() -> None:
    def program(x: Any, v: Any) -> Any:
        x[x > 0] = v
        return x

    check(program, ordinary("f8", 9), np.arange(3.0), tolerance=CLOSE)
    check(program, ordinary("f8", 9), np.arange(9.0), tolerance=CLOSE)


def test_the_shortest_path_is_a_native_loop() -> None:
    compiled = fusec.jit(in_a_loop)
    compiled(ordinary("f8", 60, 60), ordinary("f8", 60))
    assert [c.is_native for c in compiled.traces[0].control] == [True]


# ------------------------------------------------------------------- one boolean for a whole array


def filled_if(x: Any, limit: Any) -> Any:
    y = x.copy()
    above = x.sum() > limit
    y[above] = 7.0
    y[np.asarray(x[0] > limit)] += 1
    return y, y[above], x[above].shape[0]


def replaced_if(x: Any, limit: Any) -> Any:
    y, z = x.copy(), np.zeros((2, x.size))
    above = x.max() > limit
    y[above] = x[above] * 2 + 1
    z[np.asarray(x.min() > limit)] = x
    return y, z


def number_if(x: Any, limit: Any) -> Any:
    largest = np.asarray(x.max())
    above = largest > limit
    taken = np.ones_like(largest)
    taken[above] = largest[above]
    largest[above] = np.array([limit])
    return largest, taken


def rows_if(x: Any, limit: Any) -> Any:
    y = np.zeros((x.size, 3))
    for i in range(x.size):
        y[i][x[i] > limit] = i
        y[x[i] < limit] -= 1
    return y


@pytest.mark.parametrize("limit", [-100.0, 0.25, 100.0])
@pytest.mark.parametrize("program", [filled_if, replaced_if, number_if, rows_if])
def test_masks_of_rank_0(program: Any, limit: float) -> None:
    check(program, ordinary("f8", 5, seed=3), limit)


def test_two_values_for_one_boolean() -> None:
    @fusec.jit
    def program(x: Any, limit: Any) -> Any:
        y = np.asarray(x.sum())
        y[y > limit] = x[:2]
        return y

    for limit in (-100.0, 100.0):
        with pytest.raises(ValueError, match="cannot assign 2 input values to the"):
            program(np.ones(5), limit)
