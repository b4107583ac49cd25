"""Rules of sorting, quantiles, cumulative sums, selections and interpolation, by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_harness import judge

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
