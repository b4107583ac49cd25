"""Variables that live until modules are taken apart at the interpreter's end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import early, sys
import numpy as np, fusec
v = fusec.Variable(np.ones(3))
@fusec.jit
def f(x):
    v.assign_add(x)
    return v.read_value()
print(f(np.ones(3)))
early.f, early.v, np.early, early.modules = f, v, early, sys.modules  # taken apart after fusec
del v, f
"""


def test_a_variable_that_dies_after_fusecs_modules_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2. 2. 2.]\n", "")
