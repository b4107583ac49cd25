"""Summaries while a process forks: each is in a file once, also those of a child."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import os, sys
import fusec

with fusec.summary.writer(sys.argv[1]):
    fusec.summary.scalar("of parent", 1.0, step=0)
    child = os.fork()
    if not child:
        fusec.summary.scalar("of child", 5.0, step=7)
        sys.exit(0) if sys.argv[2] == "exit" else os._exit(0)
    os.waitpid(child, 0)
    fusec.summary.scalar("of parent", 2.0, step=1)
"""

needs = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("tensorboard", "tensorboardX")),
    reason="tensorboard and tensorboardX: of the extra test")


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator: Any = importlib.import_module(
        "tensorboard.backend.event_processing.event_accumulator").EventAccumulator(str(folder))
    accumulator.Reload()
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
            for tag in accumulator.Tags()["scalars"]}


@needs
@pytest.mark.parametrize("end", ["exit", "_exit"])
def test_a_child_has_a_file_of_its_own(end: str, tmp_path: Path) -> None:
    """What the parent had kept was written twice, and the child's among it, or not at all."""
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), end], check=True,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=120)
    assert read(tmp_path) == {"of parent": [(0, 1.0), (1, 2.0)], "of child": [(7, 5.0)]}
    assert len(list(tmp_path.iterdir())) == 2
