"""The report of a run over several devices: every kernel and library call, its device and time."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

DEVICE = "/job:localhost/task:0/device:CPU:"


@fusec.jit
def f(x, m):
    with fusec.device("CPU:1"):
        y = np.sin(np.sort(x)[::-1] * 2) + 1
    with fusec.device("CPU:0"):
        z = np.linalg.inv(m + np.eye(3))
        t = 0.0
        for i in range(1000):
            t = t * 0.5 + x[i % 100]
        return np.cos(y) + z[0, 0] * t


def test_every_kernel_and_library_call_is_listed_with_its_device_and_time() -> None:
    x, m = np.linspace(0.0, 1.0, 500), np.eye(3)
    with fusec.config.override(logical_cpu_devices=2):
        want = f(x, m)
        concrete = f.concrete(x, m)
        for _ in range(3):
            got, report = concrete.run(x, m, options=fusec.RunOptions(trace=True))
            np.testing.assert_array_equal(got, want)
        found = {(node.op, node.device) for node in report.nodes}
        assert found == {("Sort", f"{DEVICE}1"), ("kernel", f"{DEVICE}1"), ("kernel", f"{DEVICE}0"),
                         ("LinalgInv", f"{DEVICE}0"), ("Loop", f"{DEVICE}0")}
        assert [node.name for node in report.nodes if node.op != "kernel"] == [
            "Sort", "LinalgInv", "Loop"]  # of what may raise, in the program's order
        assert all(0 < node.us < 1e6 for node in report.nodes)
        assert sum(len(node.nodes) for node in report.nodes if node.op == "kernel") >= 7
        assert any(line.endswith(" on CPU:1") for line in str(report).splitlines())
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            concrete.run(x, -m, options=fusec.RunOptions(trace=True))
