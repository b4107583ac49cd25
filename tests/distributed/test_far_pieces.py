"""Periodic domains: the rows of one end beside those of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")

X = np.random.default_rng(3).standard_normal((60, 12))


def rolled(x: Any) -> Any:
    return np.roll(x, 2, axis=0) - x, np.roll(x, -8, axis=0) + x


def rolled_both_ways(x: Any) -> Any:
    return np.roll(x, (3, -2), axis=(0, 1)) * x


def padded(x: Any) -> Any:
    p = np.pad(x, ((3, 2), (0, 0)), mode="wrap")
    return p[:-5] + p[5:]


def ghost_rows(x: Any) -> Any:
    u = np.zeros((64, 12))
    u[2:-2] = x
    u[:2] = u[-4:-2]
    u[-2:] = u[2:4]
    return u[4:] - 2 * u[2:-2] + u[:-4]


def fourth_order(x: Any) -> Any:
    for _ in range(70):
        dx = -np.roll(x, 2, 0) + 8 * np.roll(x, 1, 0) - 8 * np.roll(x, -1, 0) + np.roll(x, -2, 0)
        x = x + 0.01 * dx
    return x


@pytest.mark.parametrize("chunks", [((15, 15, 15, 15), 12), ((9, 21, 19, 11), (5, 7))])
@pytest.mark.parametrize("function", [rolled, rolled_both_ways, padded, ghost_rows, fourth_order])
def test_as_on_one_machine(function: Callable[[Any], Any], chunks: Any) -> None:
    jitted = fusec.jit(function)
    got, want = jitted(da.from_array(X, chunks=chunks)), jitted(X.copy())
    for one, other in zip(got, want, strict=True) if type(want) is tuple else [(got, want)]:
        np.testing.assert_array_equal(one.compute(scheduler="synchronous"), other)


def test_one_block_gives_a_row() -> None:
    shown = str(fusec.explain(fusec.jit(rolled), da.from_array(X, chunks=(15, 12))))
    assert shown.count("joined by taken") == 10 and "peak of a task" in shown


def test_more_rows_are_not_sent_to_all() -> None:
    with pytest.raises(fusec.UnsupportedError, match=r"beyond a block of x(.|\n)*rechunk..0: -1"):
        fusec.jit(lambda x: np.roll(x, 9, axis=0))(da.from_array(X, chunks=(15, 12)))
