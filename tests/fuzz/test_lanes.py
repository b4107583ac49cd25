"""Programs of one lane with branches and loops, in vectors with masks: some seeds."""

from __future__ import annotations

import lanes
import pytest

import fusec
from fusec.codegen.cpu.lanes import choice


# 26: a check that reads what a branch with masks gave was once left to the call, and refused.
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 26])
def test_lanes_equal_the_plain_loop(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    fusec.clear_caches()
    monkeypatch.setattr(choice, "forced", True)
    lanes.ways.clear()
    failed = lanes.failure(seed)
    assert failed is None, failed
    assert "refused" not in lanes.ways


@pytest.mark.repeats
def test_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", True)
    failed = [lanes.failure(seed) for seed in range(100, 112)]
    assert not any(failed), "\n".join(filter(None, failed))
