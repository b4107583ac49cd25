"""Every program of the corpus under ``fusec.jit`` against plain NumPy, and the corpus's size."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.programs.compare import difference, outcome
from tests.programs.corpus import Program, programs
from tests.programs.expected_failures import EXPECTED_FAILURES
from tests.programs.measure import check

PROGRAMS = programs()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_results_kinds_and_mutations(program: Program) -> None:
    failure = check(program, program.small)
    if program.name in EXPECTED_FAILURES:
        assert EXPECTED_FAILURES[program.name] in failure, failure or "it runs now: unmark it"
    else:
        assert failure == ""


def test_the_corpus_is_as_large_as_promised() -> None:
    traits = Counter(t for p in PROGRAMS for t in p.traits)
    assert len(PROGRAMS) >= 60
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)
    assert traits["published"] >= 30
    assert traits["data-loop"] >= 20
    assert traits["views"] >= 15
    assert traits["state"] >= 5


def test_programs_called_published_have_25_lines_and_a_source() -> None:
    published = [p for p in PROGRAMS if "published" in p.traits]
    assert [p.name for p in published if p.lines < 25] == []
    assert [p.name for p in published if "Source:" not in (p.function.__doc__ or "")
            and "(19" not in (p.function.__doc__ or "")] == []


def test_inputs_are_deterministic_and_plain_numpy_is_quick() -> None:
    for program in PROGRAMS:
        first, second = program.inputs(program.small), program.inputs(program.small)
        assert difference(first, second) == "", program.name
        start = time.process_time()
        outcome(program.function, first)
        assert time.process_time() - start < 0.5, program.name


def test_marked_programs_exist() -> None:
    assert set(EXPECTED_FAILURES) <= {p.name for p in PROGRAMS}


def test_a_program_that_once_did_not_compile_at_its_large_size() -> None:
    program = next(p for p in PROGRAMS if p.name == "csr_transpose")
    assert check(program, program.large) == ""
