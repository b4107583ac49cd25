"""The loops that are measured against Numba: equal values, and a section that is replaced."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.bench import loops


@pytest.mark.parametrize("case", loops.CASES[:7], ids=lambda c: c.run.__name__)
def test_loops_give_numpys_values(case: loops.LoopCase) -> None:
    args = tuple(x[:12] if isinstance(x, np.ndarray) and x.ndim == 1 else x
                 for x in case.make(np.random.default_rng(1)))
    args = tuple(x[:12, :12] if isinstance(x, np.ndarray) and x.ndim == 2 else x for x in args)
    got, want = fusec.jit(case.run)(*args), case.run(*args)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_section_is_replaced_not_repeated() -> None:
    page = loops.written("# Page\n", "first")
    again = loops.written(page, "second")
    assert again.count(loops.BEGIN) == again.count(loops.END) == 1
    assert "second" in again and "first" not in again and again.startswith("# Page\n")
