"""A sample of the mutants of `tests/graphs/mutants`, in a child whose arrays end at guard pages.

More: ``python tests/graphs/mutants -n 100000 --heap``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.skipif(sys.platform != "linux", reason="the guard pages are Linux's")
def test_mutants_are_refused_or_right(tmp_path: Path) -> None:
    """Of ops that read or write where data says: their seeds are written by hand."""
    rows = ("CheckIndex", "Gather", "Scatter", "Pick", "Window", "SliceUpdate")
    (tmp_path / "seeds.json").write_text("{}")
    command = [sys.executable, str(HERE / "mutants"), "-n", "60", "--seed", "7", "--heap",
               "--seeds", str(tmp_path / "seeds.json"), "--json", str(tmp_path / "counts.json"),
               "--rows", *rows]
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "counts.json").read_text())
    assert summary["failures"] == [] and summary["rows"] == len(rows)
    assert summary["outcomes"]["refused"] > 5 and summary["outcomes"]["right"] > 10


@pytest.mark.skipif(sys.platform != "linux", reason="the guard pages are Linux's")
@pytest.mark.parametrize("access", [
    "Guarded().array(a, False).ctypes.data - 8",
    "np.full(10, 1.0).ctypes.data + 80"])
def test_what_goes_beyond_ends_the_process(access: str) -> None:
    program = ("import ctypes, numpy as np\nfrom guards import Guarded, guard_all_arrays\n"
               "guard_all_arrays()\na = np.arange(10.0)\n"
               f"ctypes.c_double.from_address({access}).value")
    path = os.pathsep.join([str(HERE / "mutants"), str(HERE.parents[1])])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120,
                          env=os.environ | {"PYTHONPATH": path}, check=False)
    assert done.returncode == -11, done.stderr
