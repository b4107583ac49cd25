"""The loops that draw: values and states are NumPy's, nothing of them runs in Python."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.bench import draws


@pytest.mark.parametrize("case", draws.CASES, ids=lambda c: c.run.__name__)
def test_loops_draw_as_numpy_does(case: draws.DrawCase) -> None:
    one, two = np.random.default_rng(2), np.random.default_rng(2)
    compiled = fusec.jit(case.run)
    np.testing.assert_allclose(compiled(two, *case.small), case.run(one, *case.small), rtol=1e-9)
    assert one.bit_generator.state == two.bit_generator.state
    assert all(c.is_native and not c.calls for c in compiled.traces[0].control)


def test_a_row_of_the_table() -> None:
    row = draws.row(draws.DrawFinding(draws.CASES[0], 2.0, 4.0, 0.1, None))
    assert row == "| random_walk | 2e4 | 2e+03 | 4e+03 | 100 | refused | |"
