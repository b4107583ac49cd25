"""The benchmark on a GPU, with the emulated device in CuPy's place: its figures are worthless, its
way of measuring is that of a GPU."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pytest
from fake_cupy import as_gpu

from fusec.bench import cli, gpu_suite
from fusec.bench.cases import gpu_cases, gpu_figures, lane_figures
from fusec.bench.cases.gpu_cases import GpuCase
from fusec.bench.programs import all_programs
from fusec.core import gpus


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_suite, "BATCHES", 1)
    monkeypatch.setattr(gpu_suite, "MOST_CALLS", 1)
    monkeypatch.setattr(gpu_suite, "installed", lambda name: False)


def bench(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers())
    return cli.run(parser.parse_args(["bench", "--suite", "gpu", "--dtypes", "f32", *arguments]))


def test_a_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu_cases, "QUICK_SIZES", (2_000,))
    monkeypatch.setattr(gpu_suite, "COPY_BYTES", 1 << 16)
    monkeypatch.setattr(gpu_figures, "table", lambda programs, dtypes: "the figures")
    monkeypatch.setattr(lane_figures, "table", lambda dtypes: "of lanes")
    with as_gpu(monkeypatch):
        assert bench("softmax", "--quick") == 0
    shown = capsys.readouterr().out
    assert "Emulated GPU, driver for CUDA 12000, CuPy 0" in shown and "the figures" in shown
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("|")]
    assert [row[0][2:] for row in rows[2:]] == [
        "chain_of_2", "chain_of_10", "transcendental", "total", "sums_of_rows", "sums_of_columns",
        "stencil", "softmax"]
    chain = rows[2]
    assert float(chain[3]) > 0 and chain[5].endswith("%")
    assert len({len(row) for row in rows}) == 1


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch):
        suite = gpu_suite.Suite(1 << 10)
        case = GpuCase("f", 10, "float64", lambda x: x + 1, lambda: (np.ones(10),))
        row = suite.measure(case)
        assert row.wrong == "" and row.nbytes == 160
        assert suite._difference(case, (np.zeros(10),), np.full(10, 1.1)).startswith("other")
        failing = GpuCase("g", 10, "float64", lambda x: x + undefined, lambda: (np.ones(10),))  # noqa: F821
        assert suite.measure(failing).wrong.startswith("NameError")


def test_rivals_that_cannot_run_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(case: GpuCase, args: Any) -> Any:
        return (lambda: case.function(*args)), (lambda: None)

    def none(case: GpuCase, args: Any) -> Any:
        raise ValueError("cannot\nbe compiled")

    with as_gpu(monkeypatch):
        monkeypatch.setattr(gpu_suite, "installed", lambda name: name != "jax")
        monkeypatch.setattr(gpu_suite, "_MAKE", {"cupy": own, "cupy.fuse": none, "torch": own})
        case = GpuCase("f", 10, "float64", lambda x: x + 1, lambda: (np.ones(10),))
        rivals = gpu_suite.Suite(1 << 10).measure(case).rivals
    assert rivals["jax"] == "-" and rivals["cupy.fuse"] == "ValueError: cannot"
    assert isinstance(rivals["cupy"], float) and isinstance(rivals["torch"], float)


def test_without_a_gpu_it_says_why_and_gives_the_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpus, "package", lambda: None)
    monkeypatch.setattr(gpu_figures, "table", lambda programs, dtypes: "the figures")
    monkeypatch.setattr(lane_figures, "table", lambda dtypes: "of lanes")
    assert bench() == 0
    shown = capsys.readouterr().out
    assert "nothing was measured: a GPU is used through CuPy, which is not installed" in shown
    assert "pip install 'cupy-cuda12x" in shown and "the figures" in shown


def test_every_program_is_a_case() -> None:
    cases = list(gpu_cases.cases(all_programs(), ("float32", "float64"), quick=False))
    names = {case.name for case in cases}
    assert {"softmax", "layernorm_gelu", "black_scholes", "nbody", "kmeans", "hdiff",
            "stencil", "total"} <= names
    assert {case.size for case in cases if case.name == "chain_of_2"} == set(gpu_cases.SIZES)
