"""Each program of the corpus for all lanes equals the plain loop over them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from lane_programs import PROGRAMS, LaneProgram

import fusec


def loop_over_lanes(
    program: LaneProgram, args: list[np.ndarray], shared: frozenset[int], count: int
) -> list[np.ndarray]:
    """The leaves of the results of the plain loop, lanes first."""
    found = []
    for lane in range(count):
        result = program.f(*(x if k in shared else x[lane] for k, x in enumerate(args)))
        found.append(result if isinstance(result, tuple) else (result,))
    return [np.stack([np.asarray(r[k]) for r in found]) for k in range(len(found[0]))]


def assert_same(got: Any, want: list[np.ndarray]) -> None:
    leaves = got if isinstance(got, tuple) else (got,)
    assert len(leaves) == len(want)
    for x, y in zip(leaves, want, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if x.dtype.kind in "fc":
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
        else:
            np.testing.assert_array_equal(x, y)


def compare(program: LaneProgram, count: int, shared: frozenset[int] = frozenset()) -> None:
    axes = tuple(None if k in shared else 0 for k in range(len(program.lanes)))
    given, plain = (program.arguments(count, shared) for _ in range(2))
    want = loop_over_lanes(program, plain, shared, count)
    assert_same(fusec.vmap(program.f, axes)(*given), want)
    for x, y in zip(given, plain, strict=True):
        np.testing.assert_array_equal(x, y)  # writes to arguments


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_of_seven_lanes(program: LaneProgram) -> None:
    compare(program, 7)


@pytest.mark.repeats
@pytest.mark.parametrize("count", [1, 2, 1000])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_of_other_numbers_of_lanes(program: LaneProgram, count: int) -> None:
    compare(program, count)


SHARED = [(p, frozenset(k)) for p in PROGRAMS for n in range(1, len(p.lanes))
          for k in combinations(range(len(p.lanes)), n)]


@pytest.mark.repeats
@pytest.mark.parametrize("program, shared", SHARED,
                         ids=[f"{p.name}-{sorted(k)}" for p, k in SHARED])
def test_with_arguments_that_all_lanes_share(program: LaneProgram, shared: frozenset[int]) -> None:
    compare(program, 5, shared)


def test_the_corpus_has_sixty_programs() -> None:
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS) >= 60
