"""Every bench and corpus program has a page, which is small and is read back as it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_checks import says_what_explain_says

import fusec
from fusec.bench.programs import NAMES, program
from fusec.inspect.page.page import read, save
from fusec.inspect.page.views import sections_of
from tests.programs.corpus import Program, programs
from tests.programs.expected_failures import EXPECTED_FAILURES

LIMIT = 1_000_000  # bytes
SMALL = {"kmeans": 200, "logreg": 150, "eos": 501, "black_scholes": 300}


def check(concrete: Any, path: Path) -> None:
    sections = sections_of(concrete)
    assert save(path, sections).stat().st_size < LIMIT
    assert read(path) == json.loads(json.dumps(sections, default=str))
    says_what_explain_says(sections, 0, sections["report/0"]["text"])  # which is explain's
    shown = sections["kernels/0"]
    assert [k["name"] for k in shown["kernels"]] == [k.name for k in concrete.kernels]
    assert [e["reason"] for e in shown["externs"]] == [e.reason for e in concrete.externs]
    for kernel in shown["kernels"]:
        code = sections[f"code{kernel['text']}/0"]
        loops = dict(code["parts"])["loops"].split("\n")
        # A kernel that writes an argument back is of no node.
        assert len(code["links"]["loops"]) == (len(loops) if kernel["nodes"] else 0)
        for title, rows in code["links"]["code"].items():
            assert len(rows) <= dict(code["parts"])[title].count("\n") + 1
            assert all(0 <= row < len(loops) for of in rows for row in of)


@pytest.mark.repeats
@pytest.mark.parametrize("name", NAMES)
def test_bench_programs(name: str, tmp_path: Path) -> None:
    bench = program(name)
    args = bench.make_args(SMALL.get(name, 64), np.dtype(np.float64), 0)
    check(fusec.jit(bench.function).concrete(*args), tmp_path / "p.html")


@pytest.mark.repeats
@pytest.mark.parametrize("program", programs(), ids=lambda p: p.name)
def test_programs_of_the_corpus(program: Program, tmp_path: Path) -> None:
    if program.name not in EXPECTED_FAILURES:
        concrete = fusec.jit(program.function).concrete(*program.inputs(program.small))
        check(concrete, tmp_path / "p.html")
