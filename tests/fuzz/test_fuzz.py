"""Random programs: NumPy, machine code, reference and readable source agree bit for bit.

A small vocabulary whose results are exact, so that whole programs are compared bit for bit; the
package `fuzzer` draws from everything.  ``FUZZ_N`` sets the number of programs; without it a fixed
few run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "differential"))
from harness import assert_outcomes, check, clone, run, run_with
from oracle import OWN, own_functions_in_reference, run_source
from programs import Program, programs

import fusec
from fusec.codegen.kernels.reference import run_kernel
from fusec.ir import Graph
from fusec.ops.graphs.evaluate import evaluate_all
from fusec.ops.graphs.verify import verify
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import Repeat, pipeline

COUNT = int(os.environ.get("FUZZ_N") or os.environ.get("FUZZ_FEW") or "150")
many = settings(
    max_examples=COUNT, deadline=None, database=None, derandomize="FUZZ_N" not in os.environ,
    suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
)
few = settings(many, max_examples=max(COUNT // 3, 20))


def reproduced(program: Program) -> str:
    return f"\n\n# ---- run this\n{program.runnable}\n# ----\n"


@many
@given(programs(OWN), st.integers(0, 5))
def test_programs_agree(program: Program, turn: int) -> None:
    """Whole calls twice; every kernel in the reference; in one of six the readable source.

    With FMAs (in a third) machine code and reference agree; NumPy rounds differently there.
    """
    try:
        _agree(program, with_source=turn == 0)
        if turn > 3:
            _agree_with_fmas(program)
    except Exception as error:
        error.add_note(reproduced(program))
        raise


def _agree(program: Program, with_source: bool) -> None:
    args = program.make()
    eager, compiled = program.function(OWN), fusec.jit(program.function(), fp="strict")
    want = run(eager, args)
    assert want.error is None
    check(eager, *args, jitted=compiled, engines=False)
    concrete = compiled.concrete(*clone(tuple(args)))
    with own_functions_in_reference():
        got = run(lambda *a: run_with(concrete, run_kernel, a), args)
        assert_outcomes(got, want, what="reference:")
    if with_source:
        got = run(lambda *a: run_with(concrete, run_source, a), args)
        assert_outcomes(got, want, what="source:")


def _agree_with_fmas(program: Program) -> None:
    args = program.make()
    compiled = fusec.jit(program.function(), fp="contract")
    want = run(compiled, args)
    concrete = compiled.concrete(*clone(tuple(args)))
    with own_functions_in_reference():
        got = run(lambda *a: run_with(concrete, run_kernel, a), args)
    assert_outcomes(got, want, what="reference with FMAs:")


@few
@given(programs(longest=7))
def test_passes_keep_values_and_are_idempotent(program: Program) -> None:
    args = program.make()
    try:
        graph = fusec.jit(program.function()).trace(*clone(tuple(args))).graph
        _check_passes(graph, args)
    except Exception as error:
        error.add_note(reproduced(program))
        raise


def _check_passes(graph: Graph, args: list[np.ndarray]) -> None:
    leaves = [np.asarray(a) for a in clone(tuple(args))]
    before = evaluate_all(graph, leaves[: len(graph.inputs)])
    for step in pipeline(PassOptions("strict")):
        for item in step.passes if isinstance(step, Repeat) else (step,):
            after = item.run(graph)
            verify(after)
            assert item.run(after) is after or isinstance(step, Repeat), f"{item.name} again"
            found = evaluate_all(after, leaves[: len(graph.inputs)])
            assert_same_values(found, before, item.name)
            graph = after


def assert_same_values(found: Any, wanted: Any, name: str) -> None:
    for a, b in zip(found[0], wanted[0], strict=True):
        assert _same(a, b), f"{name}: {b!r} became {a!r}"
    old, new = dict(wanted[1]), dict(found[1])
    for position in new:
        assert _same(new[position], old[position]), f"{name}: update {position} differs"


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    same = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
    return bool(same.all())


def test_generator_makes_varied_programs() -> None:
    """The generator reaches writes, views and reductions, and prints code that runs."""
    seen: list[str] = []

    @settings(many, max_examples=300, derandomize=True, phases=[Phase.generate])
    @given(programs(OWN))
    def collect(program: Program) -> None:
        seen.append(program.runnable)
        compile(program.runnable, "<program>", "exec")

    collect()
    text = "\n".join(seen)
    for part in ("+=", ".T", ".sum(", "np.where", "astype", "[::-1]", "np.concatenate"):
        assert part in text, f"{part} never drawn"


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
