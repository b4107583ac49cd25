"""A few of the programs of `random_programs`, which makes as many as it is asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from random_programs import failure

PROGRAMS = int(os.environ.get("VARIABLE_PROGRAMS", os.environ.get("FUZZ_FEW", "200")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, PROGRAMS, 20))
def test_programs_are_what_plain_python_does(first: int) -> None:
    for seed in range(10**6 + first, 10**6 + min(first + 20, PROGRAMS)):
        assert not failure(seed)
