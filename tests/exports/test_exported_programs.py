"""Programs of the corpus as C functions: fusec's bits at five sizes, or a refusal."""

from __future__ import annotations

import pytest

from tests.programs.five_sizes import sized_programs

from .c_program import needs_compiler
from .corpus import report
from .overheads import MOST_NS, of_program
from .test_c_library import pytestmark as needs_v3

PROGRAMS = {program.name: program for program in sized_programs()}
pytestmark = needs_v3


@pytest.mark.parametrize("name", ["julian_day", "kepler", "morton", "popcount", "langtons_ant",
                                  "gillespie", "filter_chain", "advect"])
def test_bits_at_five_sizes(name: str) -> None:
    assert report(PROGRAMS[name], ("v3",)).startswith("same bits")


@pytest.mark.parametrize(("name", "text"), [
    ("median_filter", "np.median"), ("controlled_tank", "PID"), ("sieve", "data decides")])
def test_refusals(name: str, text: str) -> None:
    line = report(PROGRAMS[name], ("v3",))
    assert line.startswith("refused") and text in line


@needs_compiler
def test_a_call_costs_little_beside_its_kernel() -> None:
    found = of_program(PROGRAMS["kepler"])
    assert len(found) == 5 and max(found) <= MOST_NS
