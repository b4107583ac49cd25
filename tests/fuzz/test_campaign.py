"""The fuzzer itself, and a time-boxed run of it: seeds from 0 on, then from a random one, printed.

``make fuzz N=200000 SEED=0`` runs as many as one likes; ``FUZZ_SECONDS`` sets the time box here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from fuzzer import vocabulary
from fuzzer.campaign import Campaign, takes_its_process_along
from fuzzer.child import program_of as any_program_of
from fuzzer.grow import program_of
from fuzzer.judge import Failure, Judge
from fuzzer.program import Program, Statement
from fuzzer.rounding import Span
from fuzzer.shrink import shrink
from fuzzer.values import DTYPES, Argument

import fusec

SECONDS = float(os.environ.get("FUZZ_SECONDS", "40"))
X = Argument("array", "f8", (1.5, -2.0, 3.25), (3,))


def test_no_program_is_compiled_wrongly() -> None:
    """Fixed seeds, so that a change is judged by its effect on them; `make fuzz` draws new ones."""
    summary = Campaign(map(str, range(400)), jobs=2, seconds=SECONDS).run()
    print(summary)
    shown = "".join(f"\n# ---- seed {f['seed']}: {f['failure']}\n{f['program']}"
                    for f in summary.failures)
    assert not summary.failures, shown
    assert summary.programs >= 50, str(summary)


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["c", "s", "w"])
def test_no_program_with_control_flow_is_compiled_wrongly(kind: str) -> None:
    """``c``: branches, loops and views; ``s``: globals, closures, objects and containers too;
    ``w``: arrays that loops shrink and grow."""
    summary = Campaign((f"{kind}{n}" for n in range(200)), jobs=2, seconds=SECONDS / 4).run()
    shown = "".join(f"\n# ---- seed {f['seed']}: {f['failure']}\n{f['program']}"
                    for f in summary.failures)
    assert not summary.failures, shown
    assert summary.programs >= 10, str(summary)


def test_no_size_is_compiled_wrongly() -> None:
    """One function for six sizes, 0 and 1 among them, and such that NumPy refuses."""
    summary = Campaign((f"z{n}" for n in range(24)), jobs=2, seconds=SECONDS / 8).run()
    shown = "".join(f"\n# ---- seed {f['seed']}: {f['failure']}\n{f['program']}"
                    for f in summary.failures)
    assert not summary.failures, shown
    assert summary.programs >= 2, str(summary)


def test_stateful_programs_are_varied_and_run_as_printed() -> None:
    programs = [any_program_of(f"s{seed}") for seed in range(100)]
    text = "\n".join(p.source for p in programs)
    for part in ("nonlocal", "global GAIN", "one.add(", "mine", "items[", "best is None", "touch"):
        assert part in text, f"{part} never drawn"
    for program in programs[:20]:
        compile(program.runnable, "<program>", "exec")
        compile(program.source, "<program>", "exec")


def test_a_seed_is_a_program() -> None:
    assert program_of("7") == program_of("7")
    code = "from fuzzer.grow import program_of; print(hash(0), program_of('7').source)"
    shown = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(__file__),
                           capture_output=True, text=True, check=True).stdout
    assert program_of("7").source in shown


def test_programs_are_varied_and_run_as_printed() -> None:
    programs = [program_of(str(seed)) for seed in range(600)]
    ops = Counter(s.op for p in programs for s in p.statements)
    assert len(ops) > 200
    assert {a.dtype for p in programs for a in p.arguments} == set(DTYPES)
    assert any(a.kind == "alias" for p in programs for a in p.arguments)
    for program in programs[:50]:
        compile(program.runnable, "<program>", "exec")


def test_the_vocabulary_follows_the_tables() -> None:
    codes = {c.code for c in vocabulary.functions()}
    assert {"np.concatenate", "np.linalg.solve", "np.cumsum"} <= codes
    assert {code for code, _ in vocabulary.ufuncs()} >= {"np.add", "np.frexp", "np.logaddexp"}
    assert vocabulary.rounding_of(np.add) == "exact"
    assert vocabulary.rounding_of(np.multiply) == "product"
    assert vocabulary.rounding_of(np.sin).startswith("ulp")


# ------------------------------------------------------------------------------------ the oracle


def of(*statements: Statement, result: str = "t0", fp: str = "strict") -> Program:
    return Program((X,), statements, (result,), fp)


def spanned(program: Program, runs: int = 20) -> Span:
    return Span(program, program.make, runs)


def test_exact_statements_allow_one_answer() -> None:
    span = spanned(of(Statement("x0 + 1.5", "operator +", "t0", "exact")))
    want = np.array([3.0, -0.5, 4.75])
    assert not span.outside(0, want, want).any()
    assert span.outside(0, np.nextafter(want, 9), want).all()


def test_sums_allow_other_orders_and_movement_does_not() -> None:
    total = spanned(of(Statement("np.sum(x0)", "np.sum", "t0")))
    want = np.array(2.75)
    assert not total.outside(0, np.nextafter(want, 9), want).any()
    assert total.outside(0, want + 1e-10, want).all()
    moved = spanned(of(Statement("np.roll(x0, 1)", "np.roll", "t0")))
    rolled = np.array([3.25, 1.5, -2.0])
    assert moved.outside(0, np.nextafter(rolled, 9), rolled).all()


def test_sums_into_a_variable_allow_other_orders() -> None:
    into = spanned(of(Statement("np.zeros(())", "np.zeros", "t0", "exact"),
                      Statement("np.sum(x0, out=t0)", "np.sum", "t1")))
    want = np.array(2.75)
    assert not into.outside(0, np.nextafter(want, 9), want).any()
    assert into.outside(0, want + 1e-10, want).all()


def test_products_are_open_only_where_they_may_be_fused() -> None:
    product = Statement("x0 * 0.3", "operator *", "t0", "product")
    want = np.array(X.values) * 0.3
    other = np.nextafter(want, 9)
    assert spanned(of(product)).outside(0, other, want).all()
    assert not spanned(of(product, fp="contract")).outside(0, other, want).any()


def test_overflowed_products_may_be_in_range_when_fused() -> None:
    text = "x0 * 1e308 - 1.5e308"
    span = spanned(of(Statement(text, "operator *+", "t0", "product"), fp="contract"))
    want = np.array([0.0, -np.inf, np.inf])
    assert not span.outside(0, np.array([0.0, -np.inf, 1.75e308]), want).any()
    assert span.outside(0, np.array([0.0, -np.inf, 1e300]), want)[2]


# --------------------------------------------------------------------------- failures are failures


@pytest.fixture
def other_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Rows of the registry may be replaced; functions of them are forgotten afterwards."""
    from fusec.codegen.kernels import reference

    yield monkeypatch
    monkeypatch.undo()
    reference.scalar_functions.cache_clear()


def test_a_wrong_value_is_found_and_shrunk(other_rows: pytest.MonkeyPatch) -> None:
    """With a broken trace of ``np.floor`` a long program shrinks to the one line that matters."""
    from fusec.ops import registry

    right = registry.get("Floor")
    other_rows.setitem(registry._ROWS, "Floor", replace(right, scalar="ceil"))
    program = of(Statement("x0 + 1.0", "operator +", "t0", "exact"),
                 Statement("np.floor(t0)", "np.floor", "t1", "exact"),
                 Statement("t1[::-1]", "x[...]", "t2", "exact"), result="t2")
    with pytest.raises((Failure, AssertionError)):
        Judge(program).judge()

    def fails(candidate: Program) -> str | None:
        try:
            Judge(candidate).judge()
        except Exception as error:
            return str(error)
        return None

    found = shrink(program, fails, 20.0)
    assert [s.text for s in found.statements] == ["np.floor(x0)"]
    assert "np.array(" in found.runnable and 'fp="strict"' in found.runnable


def test_a_refused_statement_is_taken_out() -> None:
    program = of(Statement("np.unique(x0)", "np.unique", "t0"),
                 Statement("x0 + 1.0", "operator +", "t1", "exact"), result="t1")
    verdict = Judge(program).judge()
    refused = [text.partition(":")[0] for text in verdict.refused]
    assert refused in ([], ["np.unique"])
    assert verdict.program.statements[-1].text == "x0 + 1.0"


def test_a_process_that_dies_is_noticed() -> None:
    kill = Statement("builtins.__import__('os').abort()", "operator +", "t0")
    assert takes_its_process_along(of(kill))
    assert not takes_its_process_along(of(Statement("x0 + 1.0", "operator +", "t0", "exact")))


def test_every_compiled_dtype_is_drawn() -> None:
    assert {"?", "i1", "u8", "f4", "f8"} <= set(DTYPES)
    for name in DTYPES:
        assert fusec.jit(lambda x: x)(np.zeros(2, name)).dtype == np.dtype(name)
