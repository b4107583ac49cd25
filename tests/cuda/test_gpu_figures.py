"""The table of CUDA kernels' registers and memory."""

from __future__ import annotations

import argparse

import pytest

from fusec.bench import cli
from fusec.bench.cases import gpu_figures
from fusec.bench.programs import program
from fusec.codegen.cuda.driver import nvrtc


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra cuda")
def test_figures_of_softmax() -> None:
    (row,) = gpu_figures.figures_of(program("softmax"), 10_000, "float32")
    assert row.mode == "row" and row.spilled_bytes == 0 and 0 < row.wide < row.accesses
    assert 0.5 <= row.occupancy <= 1 and row.shared_bytes > 128, "the row is on chip"
    assert row.bytes_per_point == 8
    assert f"| softmax | `{row.kernel}` | float32 | {row.threads} |" in gpu_figures.markdown([row])


def test_without_nvrtc_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:


    monkeypatch.setattr(nvrtc, "_library", lambda: None)
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers())
    assert cli.run(parser.parse_args(["bench", "softmax", "--suite", "gpu"])) == 2
    assert "pip install nvidia-cuda-nvrtc-cu12" in capsys.readouterr().out
