"""Functions of control flow that are very long are compiled with fewer of LLVM's passes."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.codegen.cpu.loops import program


def searched(x, level):
    found, k = -1, 0
    while k < len(x):
        if x[k] > level and found < 0:
            found = k
        for i in range(3):
            x[k] += np.sin(level) * i
        k += 1
    return found, x


@pytest.mark.parametrize("fp", ["strict", "fast"])
def test_they_compute_the_same(fp, monkeypatch):
    x = np.linspace(-1.0, 1.0, 50)
    want = searched(x.copy(), 0.3)
    speeds = []
    compile_ir = program.compile_ir

    def recording(text, speed, links):
        speeds.append(speed)
        return compile_ir(text, speed, links)

    monkeypatch.setattr(program, "compile_ir", recording)
    monkeypatch.setattr(program, "LONG_TEXT", 0)
    program.clear_cache()
    got = fusec.jit(searched, fp=fp)(x.copy(), 0.3)
    program.clear_cache()
    assert set(speeds) == {program.LONG_SPEED}
    assert got[0] == want[0]
    np.testing.assert_allclose(got[1], want[1], rtol=1e-14)
