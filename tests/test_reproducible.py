"""What a program compiles to is the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Several units feed one (boundaries were listed by address), with library calls and loops between.
PROGRAMS = ("elementary", "cavity_flow", "lstm", "dct_denoise")


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
