"""Programs over several devices give the bits of one; `random_placements` is the whole campaign."""

from __future__ import annotations

from random import Random

import pytest
from random_placements import REFUSALS, Case, fuzzed, placements_of, published

# Found by the campaign: a reshape that is a result, sizes that another device knows, empty results.
FOUND = ("164", "352", "w158", "w334", "299")
PUBLISHED = {case.name: case for case in published()}


def check(case: Case, each: int) -> None:
    try:
        placements = placements_of(case)
    except REFUSALS:
        pytest.skip("refused on one device, too")
    if isinstance(placements.error, REFUSALS):
        pytest.skip("refused on one device, too")
    random = Random(case.name)
    for devices in (2, 4):
        placements.check(each, devices, random)


@pytest.mark.parametrize("seed", [*FOUND, *map(str, range(20)), *(f"c{n}" for n in range(20)),
                                  *(f"w{n}" for n in range(10)), *(f"s{n}" for n in range(12))])
def test_fuzzed_programs(seed: str) -> None:
    check(fuzzed(seed), 2)


@pytest.mark.parametrize("name", sorted(PUBLISHED)[::6])
def test_published_programs(name: str) -> None:
    check(PUBLISHED[name], 1)
