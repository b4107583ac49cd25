"""A few random programs in random blocks (``python -m tests.distributed.fuzz`` has more)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fusec

pytest.importorskip("dask.array")

from tests.distributed import fuzz
from tests.distributed.chunked_programs import Made, program_of


@pytest.mark.parametrize("seed", [100, 120, 140])
def test_random_programs_in_random_blocks(seed: int) -> None:
    split, failures = fuzz.run(12, seed)
    assert not failures, failures[0]
    assert split >= 6


@pytest.mark.parametrize("seed", [1000, 1010])
def test_random_loops_in_random_blocks(seed: int) -> None:
    split, failures = fuzz.run(5, seed, has_loops=True)
    assert not failures, failures[0]
    assert split >= 2


def test_it_finds_other_bits_and_other_values() -> None:
    whole = np.linspace(0, 1, 7)
    near = np.nextafter(whole, 2)
    exact, summed = Made("v", "", (7,), True), Made("v", "", (7,), False)
    assert fuzz.difference(exact, whole.copy(), whole) == ""
    assert "differs" in fuzz.difference(exact, near, whole)
    assert fuzz.difference(summed, near, whole) == ""
    assert "differs" in fuzz.difference(summed, whole + 1e-6, whole)
    assert "differs" in fuzz.difference(summed, np.where(whole > 0.5, np.nan, whole), whole)
    assert "float32" in fuzz.difference(exact, whole.astype(np.float32), whole)


def test_a_program_is_its_seed_alone() -> None:
    assert program_of(7).source() == program_of(7).source() != program_of(8).source()


def test_a_block_that_two_tasks_compute_is_seen() -> None:
    x = fuzz.da.from_array(np.arange(9.0), chunks=3)
    tasks = dict(fusec.jit(lambda x: x * 2)(x).dask)
    fuzz.check_tasks([SimpleNamespace(dask=tasks)])
    task = next(t for t in tasks.values() if getattr(t, "func", None) is fuzz.run_block)
    with pytest.raises(AssertionError):
        fuzz.check_tasks([SimpleNamespace(dask=tasks | {"again": task})])
