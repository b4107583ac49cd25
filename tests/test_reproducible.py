"""The code of a program is the same in every process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fusec

ROOT = Path(__file__).parents[1]
# Several units feed one (boundaries were listed by address), with library calls and loops between.
PROGRAMS = ("elementary", "cavity_flow", "lstm", "dct_denoise")


@pytest.mark.one_python
def test_graphs_loops_and_machine_code_do_not_depend_on_addresses_or_hashes(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for seed, folder in enumerate(folders):
        subprocess.run([sys.executable, "-m", "tests.record", str(folder), "--only", *PROGRAMS],
                       cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": str(seed)}, check=True,
                       stdout=subprocess.DEVNULL)
    for name in PROGRAMS:
        texts = [(folder / "corpus" / f"{name}.txt").read_text() for folder in folders]
        assert "=== " in texts[0]
        assert texts[0] == texts[1], name


def test_parts_of_an_argument_are_written_back_in_order() -> None:
    """Sets of index maps have the order of their hashes, and that of None is an address."""
    def turned(x: np.ndarray) -> np.ndarray:
        x[...] = x[::-1] / (np.sqrt((x * x).sum(axis=1, keepdims=True)) + 1)
        return x * 2

    compiled = fusec.jit(turned)
    compiled(np.ones((5, 8)))
    (copies,) = (k for k in compiled.traces[0].kernels if k.name.endswith("_writeback"))
    assert re.findall(r"_target\[i0, (\d)\] =", copies.loops) == list("01234567")
