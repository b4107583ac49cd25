"""The programs of `tests.distributed.large_programs`, small: their tasks and results."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("distributed")

from tests.distributed.large_programs import PROGRAMS, functions_of, inputs, most_tasks, tasks_of

BLOCKS = 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_task_a_block_and_stage_and_the_tree(name: str) -> None:
    arrays = [array.persist(scheduler="sync") for array in inputs(name, 1e-3, BLOCKS)]
    both = functions_of(name, arrays)
    ours = both["fusec"]()
    _, stages = PROGRAMS[name]
    assert tasks_of(ours) == most_tasks(stages, BLOCKS)
    assert tasks_of(ours) - stages * BLOCKS <= 7 < BLOCKS
    assert tasks_of(ours) < tasks_of(both["dask"]())
    np.testing.assert_allclose(
        ours.compute(scheduler="sync"), both["dask"]().compute(scheduler="sync"), rtol=1e-12)
