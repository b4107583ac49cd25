"""Random programs called again and again with arrays of a GPU: every call as the CPU has it."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu

import fusec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from fuzzer.child import program_of
from fuzzer.control.program import ControlProgram
from own_order import has_own_order

CALLS = 5  # the second is looked up, the third prepared, the fifth may be a graph
# Straight lines; branches and loops, of which each takes some seconds.
PARTS = (("", 1000, 30), ("c", 1000, 8),
         pytest.param("c", 1008, 22, marks=pytest.mark.repeats))


def on_host(value: Any) -> Any:
    return optree.tree_map(lambda x: x.get() if isinstance(x, FakeArray) else x, value)


def called(function: Any, args: list[Any]) -> tuple[Any, type | None]:
    """Its results and its arguments after the call; its exception."""
    try:
        return on_host((function(*args), args)), None
    except Exception as error:
        return None, type(error)


def check(cupy: FakeCupy, seed: str) -> int:
    """One program; how many of its traces were prepared."""
    program = program_of(seed)
    has_control = isinstance(program, ControlProgram)
    args = program.make(0) if has_control else program.make()
    options = {} if has_control else {"fp": program.fp}
    here, there = (fusec.jit(program.function(), **options) for _ in range(2))
    for _ in range(CALLS):
        mine = [np.array(a, order="C") if isinstance(a, np.ndarray) else a for a in args]
        given = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in mine]
        got, want = called(there, given), called(here, mine)
        assert got[1] == want[1], (seed, got, want)
        if want[1] is None:
            compare(got[0], want[0], any(has_own_order(t.optimized_graph) for t in there.traces))
    return sum(t.gpu_call.function is not None for t in there.traces)


def compare(got: Any, want: Any, within_rounding: bool) -> None:
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        a, b = np.asarray(one), np.asarray(other)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if within_rounding and a.dtype.kind in "fc":
            few = a.dtype.itemsize < (16 if a.dtype.kind == "c" else 8)
            np.testing.assert_allclose(a, b, *((1e-3, 1e-3) if few else (1e-8, 1e-8)))
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("kind", "first", "count"), PARTS)
def test_random_programs(
    kind: str, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = 0
    with as_gpu(monkeypatch) as cupy, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cupy.pool.keeps = True
        for seed in range(first, first + count):
            prepared += check(cupy, f"{kind}{seed}")
    assert prepared >= max(1, count // 10)  # what a seed means changes with the ops: 5 to 9 of 30
