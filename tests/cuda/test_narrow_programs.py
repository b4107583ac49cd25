"""Random programs of narrow products, some seeds; `narrow_programs.py` has a command line for more.
"""

from __future__ import annotations

import narrow_programs
import pytest

import fusec


def failures(seeds: range) -> str:
    fusec.clear_caches()
    narrow_programs.counts.clear()
    return "\n".join(filter(None, map(narrow_programs.failure, seeds)))


def test_some_programs_have_numpys_bits() -> None:
    assert not failures(range(24))
    counts = narrow_programs.counts
    assert counts["with sums"] > 10 and counts["refused"] == 0


@pytest.mark.repeats
@pytest.mark.parametrize("first", range(100, 900, 50))
def test_more_of_them(first: int) -> None:
    assert not failures(range(first, first + 50))
