"""Two devices of one thread each against one: placement finds what is independent by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusec import machine

SCRIPT = Path(__file__).with_name("two_branches.py")


@pytest.mark.alone
@pytest.mark.skipif(len(machine.usable_cpus()) < 2, reason="needs two cores")
def test_two_heavy_branches_take_little_more_than_one() -> None:
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False,
                         env=os.environ | one_thread)
    assert run.returncode == 0, run.stderr
    for line in run.stdout.splitlines():
        name, one, two = line.split()
        ratio = float(one) / float(two)
        print(f"{name}: {one} ms on one device, {two} on two, {ratio:.2f} times as fast")
        assert ratio >= 1.7, line
    assert len(run.stdout.splitlines()) == 3
