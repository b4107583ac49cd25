"""Kernels of the emulated device are unloaded when nothing uses them: a process has room for some
ten thousand libraries."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.codegen.cuda.emulated_backend import BACKEND, DRIVER


def loaded() -> int:
    """How many modules are mapped, by their code."""
    gc.collect()
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("module.so" in line and "r-xp" in line for line in lines)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_modules_go_with_their_functions() -> None:
    BACKEND.clear()
    before = loaded()
    x = np.arange(3.0)
    kept = fusec.jit(lambda x: np.sqrt(x) - 0.5, device="/device:CUDAHOST:0")
    kept(x)
    assert loaded() == before + 1
    f = fusec.jit(lambda x: np.sqrt(x) * x + 0.25, device="/device:CUDAHOST:0")
    f(x)
    assert loaded() == before + 2
    del f
    BACKEND.clear()
    DRIVER.synchronize()
    assert loaded() == before + 1
    np.testing.assert_array_equal(kept(x), np.sqrt(x) - 0.5)
