"""``bench --suite gradients``: its programs, its figures, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.bench.gradients import cases, jax_twins, suite, sweeps
from fusec.bench.reports import page
from tests.gradients.differences import differences

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("f", "args"), [
    (sweeps.seidel, (RNG.random((5, 6)), 2)),
    (sweeps.adi, (RNG.random((5, 5)), 0.3, 2)),
    (sweeps.lu, (cases.positive(RNG, 5),)),
    (sweeps.cholesky, (cases.positive(RNG, 5),)),
    (sweeps.durbin, (0.1 * RNG.random(7),)),
    (sweeps.soft_dtw, (RNG.random(5), RNG.random(4))),
])
def test_programs_that_go_in_an_order(f: Any, args: Any) -> None:
    before = args[0].copy()
    gradient = fusec.grad(f)(*args)
    np.testing.assert_allclose(gradient, differences(f, args), rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(args[0], before)


def test_every_case_has_a_twin() -> None:
    every = cases.all_cases(is_quick=True)
    assert len(every) == 23 and {c.group for c in every} == {
        cases.PROGRAMS, cases.SEQUENTIAL, cases.LOOPS, cases.ADBENCH}
    twins = [c.f.__name__ for c in every if c.group == cases.SEQUENTIAL]
    assert set(twins) <= set(jax_twins.TWINS)


def test_a_measurement_and_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.md"
    target.write_text("# Performance\n\n## By hand\n\ntext\n")
    assert suite.run(["softmax", "LSTM"], True, 0.01, target) == 0
    text = target.read_text()
    assert "| softmax |" in capsys.readouterr().out
    assert text.startswith("# Performance\n\n## By hand\n\ntext\n\n## Gradients\n")
    assert "**ADBench**" in text and "| geometric mean |" in text
    assert page.with_others("# Performance\n\n## New\n", text).count("## ") == 3
    assert suite.run(["nothing"], True, 0.01, None) == 2
    assert "known: eos" in capsys.readouterr().out


def test_what_is_refused_is_said() -> None:
    def refused(x: Any) -> Any:
        return np.unique(x).sum()

    case = cases.GradientCase(
        "group", "unique", "3", refused, fusec.grad(refused), (np.ones(3),), tuple)
    finding = suite.measure(case, 0.01)
    assert "derivative of np.unique" in finding.failure
    assert "derivative of np.unique" in suite.render([finding])
