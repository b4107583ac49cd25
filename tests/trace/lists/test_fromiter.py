"""``np.fromiter`` of generator expressions and maps: loops of the graph where there are many."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import fusec

X = np.random.default_rng(8).random(50)


def plus_one(v):
    return v + 1


def programs(x):
    n = len(x)
    return (
        np.fromiter((v * 2 for v in x), dtype=float),
        np.fromiter((v * 2 for v in x), float, count=len(x)),
        np.fromiter((x[i] + i for i in range(n)), dtype=np.float32, count=n),
        np.fromiter(map(plus_one, x), float),
        np.fromiter((int(v * 10) for v in x), np.int64, len(x)),
        np.fromiter((v * 2 for v in x), float, count=3),
        np.fromiter([x[0], x[1]], dtype=float),
    )


def test_items_of_many_kinds() -> None:
    compiled = fusec.jit(programs)
    for a, b in zip(compiled(X), programs(X), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert len(compiled.trace(X).graph.nodes) < 100


@pytest.mark.parametrize("program", [
    lambda x: np.fromiter((v * 2 for v in x), dtype=float, count=len(x)),
    lambda x: np.fromiter(map(plus_one, x), float),
], ids=["generator", "map"])
def test_a_first_call_does_not_grow(program: Any) -> None:
    x = np.random.default_rng(9).random(30_000)
    fusec.jit(program)(X)
    begun = time.process_time()
    got = fusec.jit(program)(x)
    assert time.process_time() - begun < 2.0  # minutes, item by item
    np.testing.assert_array_equal(got, program(x))


def test_too_few_items() -> None:
    def program(x):
        return np.fromiter((v * 2 for v in x), float, count=60)

    with pytest.raises(ValueError, match="too short"):
        program(X)
    with pytest.raises(ValueError, match="Expected 60 but iterator had only 50 items"):
        fusec.jit(program)(X)
