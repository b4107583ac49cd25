"""Rules of sorting, quantiles, cumulative sums, selections and interpolation, by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients.differences import differences
from rule_harness import judge

import fusec

RNG = np.random.default_rng(5)
# Far apart, so that no difference changes the order, and far from 0.
GRID = RNG.permutation(np.arange(12.0) * 0.25 - 1.4).reshape(3, 4)
LINE = RNG.permutation(np.arange(9.0) * 0.25 - 1.1)
HOLES = np.where(GRID > 0.8, np.nan, GRID)
KNOTS, HEIGHTS = np.cumsum(RNG.uniform(0.5, 1, 30)), RNG.standard_normal(30)
AT = np.array([-1.0, KNOTS[0] + 0.1, 7.3, 9.1, 40.0, 7.4])
BINS = np.array([2, 0, 2, 1, 5, 5, 0, 1, 2])


def _in_place(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        y = x * 1
        change(y)
        return y

    return program


def _with_holes(f: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Of arrays with NaN where the second one, no variable, has it."""
    def program(x: Any, holes: Any) -> Any:
        return f(np.where(holes, np.nan, x))

    return program


MISSING = np.isnan(HOLES)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sort": (lambda x: (np.sort(x), np.sort(x, 0), np.sort(x, axis=None)), (GRID,)),
    "sort in place": (_in_place(lambda y: y.sort(axis=0)), (GRID,)),
    "partition": (lambda x: (np.partition(x, 2), np.partition(x, 1, axis=0)), (GRID,)),
    "partition in place": (_in_place(lambda y: y.partition(1)), (GRID,)),
    "median": (lambda x, y: (np.median(x), np.median(x, 0), np.median(
        x, axis=1, keepdims=True), np.median(y), np.median(x, axis=(0, 1))), (GRID, LINE)),
    "quantiles": (lambda x: (np.percentile(x, 30), np.quantile(x, [0.3, 0.5], axis=1), np.quantile(
        x, 1.0, axis=0, keepdims=True), np.percentile(x, [10, 90], axis=0, keepdims=True)),
                  (GRID,)),
    "quantiles with holes": (_with_holes(lambda x: (np.nanmedian(x), np.nanpercentile(
        x, 30, axis=1), np.nanquantile(x, [0.2, 0.9], axis=0))), (GRID, MISSING)),
    "cumulative": (lambda x: (
        np.cumulative_sum(x, axis=0, include_initial=True), np.cumulative_prod(x, axis=1),
        np.cumulative_prod(x, axis=0, include_initial=True)), (GRID,)),
    "cumulative in another dtype": (lambda x: (
        np.cumsum(x, dtype=np.complex128), np.cumprod(x, 1, dtype=np.complex128)), (GRID,)),
    "cumulative with holes": (_with_holes(lambda x: (np.nancumsum(x), np.nancumprod(x, 1))),
                              (GRID, MISSING)),
    "interp": (lambda x, xp, fp: np.interp(x, xp, fp), (AT, KNOTS, HEIGHTS)),
    "interp of one knot": (lambda x, xp, fp: np.interp(x, xp, fp), (AT, KNOTS[:1], HEIGHTS[:1])),
    "interp of two knots": (lambda x, xp, fp: np.interp(x, xp, fp), (AT, KNOTS[:2], HEIGHTS[:2])),
    "interp of no queries": (lambda x, xp, fp: np.interp(x, xp, fp), (
        AT[:0], KNOTS, HEIGHTS)),
    "interp of integers": (lambda x, xp, fp, k, n: (
        np.interp(x, n, fp), np.interp(k, xp, fp), np.interp(k, n, fp), np.interp(2.3, n, fp),
        np.interp(x, xp, n), np.interp(k, xp, n)), (
        AT, KNOTS, HEIGHTS, np.array([-3, 7, 11, 40], "i2"), np.arange(30, dtype="u1"))),
    "bincount": (lambda w, at: np.bincount(at, w), (LINE, BINS)),
    "vander": (lambda x: (np.vander(x), np.vander(x, 3, increasing=True)), (LINE,)),
    "vander of complex numbers": (lambda x: np.vander(x), (LINE + 1j * LINE[::-1],)),
    "selections": (lambda x, at, where: (x[x > 0] * 2, np.extract(x > 0, x), np.compress(
        where, x, axis=0), np.take(x, at, axis=np.int64(1))), (
        GRID, np.array([0, 0, 1]), np.array([True, False, True]))),
    "selected, moved": (lambda x: (np.roll(x[x > 0], 1), x[x > 0][::-1].repeat(2)), (GRID,)),
    "polyfit": (lambda x, y: (np.polyfit(x, y, 2), np.polyfit(x, np.stack([y, y * y], 1), 1)),
                (LINE, LINE[::-1] ** 2)),
    "written by a mask": (_in_place(lambda y: y.__setitem__(y > 0, y[y > 0][::-1])), (LINE,)),
    "copied": (_in_place(lambda y: np.copyto(y, y[::-1] * 2, where=y > 0)), (LINE,)),
    "complex numbers sorted": (lambda z: np.sort_complex(z), (LINE + 1j * LINE[::-1],)),
    "choose": (lambda x, y, which: np.choose(which, [x, y]), (
        LINE, LINE[::-1] * 2, np.array([1, 0, 1, 0, 0, 1, 1, 0, 0]))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_are_derivatives(name: str) -> None:
    program, arguments = PROGRAMS[name]
    judge(program, *arguments, step=2.0**-8)


def _weights(q: Any, xp: Any) -> Any:
    """The gradient of a sum of interpolated values by the knots' values: compiled."""
    return fusec.grad(lambda fp: np.interp(q, xp, fp).sum())(np.ones(len(xp)))


def test_interpolation_of_one_knot_stays_in_its_arrays() -> None:
    """It read and wrote at the index -1: the gradient was 0, and the heap another."""
    np.testing.assert_array_equal(_weights(0.5, np.array([0.0])), [1])
    np.testing.assert_array_equal(_weights(np.linspace(-5, 5, 1000), np.array([0.0])), [1000])
    np.testing.assert_array_equal(_weights(np.array([np.nan, np.inf]), np.array([np.inf])), [2])
    np.testing.assert_array_equal(_weights(np.zeros(0), np.array([0.0])), [0])
    for by in range(3):
        found = fusec.grad(lambda *a: np.interp(*a).sum(), argnums=by)(
            np.array([0.5, 3]), np.array([0.5]), np.array([2.0]))
        np.testing.assert_array_equal(found, ([0, 0], [0], [2])[by])


def test_interpolation_at_equal_last_knots() -> None:
    """The width 0 gave NaN."""
    for q, right in ((1, [0, 0, 1]), (0.5, [0.5, 0.5, 0]), (2, [0, 0, 1]), (-1, [1, 0, 0])):
        np.testing.assert_array_equal(_weights(q, np.array([0.0, 1, 1])), right)


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "u8", "f4"])
def test_interpolation_of_integers(dtype: str) -> None:
    """Quotients of integers had no machine code, and queries were integers, too."""
    np.testing.assert_allclose(_weights(0.3, np.arange(2).astype(dtype)), [0.7, 0.3], rtol=1e-15)
    np.testing.assert_array_equal(_weights(np.arange(2).astype(dtype), np.array([0.0, 2])),
                                  [1.5, 0.5])
    found = fusec.grad(lambda xp: np.interp(1.3, xp, np.array([0, 2], dtype)).sum())(
        np.array([1.0, 2]))
    assert found.dtype == np.float64 and found[0] < 0 and found[1] < 0


@pytest.mark.parametrize("starts", [[], [0], [0, 0], [0, 2], [2, 0]])
def test_sums_of_slices_of_any_number(starts: list[int]) -> None:
    """No slice at all: elements were read of an empty array."""
    at, x = np.array(starts, "i8"), np.ones(3)
    right = sum((np.add.reduceat(np.eye(3)[k], at).sum() * np.eye(3)[k] for k in range(3)),
                np.zeros(3))
    found = fusec.grad(lambda x, at: np.add.reduceat(x, at).sum())(x, at)
    np.testing.assert_array_equal(found, right)


SELECTED: dict[str, Callable[[Any], Any]] = {
    "compress": lambda x: np.compress(x > 0, x).sum(),
    "extract": lambda x: np.extract(x > 0, x).sum(),
    "method": lambda x: x.compress(x > 0).sum(),
    "of rows": lambda x: np.compress(x > 0, np.outer(x, x), axis=0).sum(),
    "cumulated": lambda x: np.cumsum(x.compress(x > 0)).sum(),
    "several, each by a number": lambda x: sum(
        np.compress(x > i / 3, x).sum() * x[i] for i in range(x.size)) + 0 * x.sum(),
    "broadcast": lambda x: np.broadcast_to(x.sum() ** 2, x[x > 0].shape).sum(),
    "broadcast rows": lambda x: (np.broadcast_to(x, (*x[x > 0].shape, x.size)) * x).sum(),
}


@pytest.mark.parametrize("name", SELECTED)
@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_sums_of_selections(name: str, size: int) -> None:
    """The way back needs the selection's size and not its elements: it was a ``KeyError``."""
    f, x = SELECTED[name], 1.3 - 0.7 * np.arange(size)
    np.testing.assert_allclose(fusec.grad(f)(x), differences(f, (x,)), rtol=1e-8, atol=1e-9)
