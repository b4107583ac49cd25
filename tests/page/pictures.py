"""Make the pictures of the documentation: ``python tests/page/pictures.py``."""

from __future__ import annotations

import linecache
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from chromium import Chromium

import fusec

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = """\
import numpy as np
import fusec


@fusec.jit
def smooth(x):
    y = x.copy()
    y[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    return y, y.sum()


@fusec.jit
def standardise(x, gain):
    z = x - x.mean(axis=1, keepdims=True)
    z /= np.sqrt((z * z).mean(axis=1, keepdims=True) + 1e-12)
    return np.tanh(gain * z), z.max(axis=1)


@fusec.jit
def score(x, tag):
    return (x * x).sum()


@fusec.jit
def step(x):
    with fusec.device("CPU:1"):
        y = np.sqrt(x) + 1
    return np.exp(-y)
"""


def functions() -> dict[str, Any]:
    """The functions of the pictures, in a file of their own."""
    linecache.cache["prog.py"] = len(SOURCE), None, SOURCE.splitlines(keepends=True), "prog.py"
    scope: dict[str, Any] = {}
    exec(compile(SOURCE, "prog.py", "exec"), scope)
    return scope


def causes(browser: Chromium, folder: Path, made: dict[str, Any]) -> None:
    """The tutorial's storm of traces and copy between devices, and code of a GPU."""
    for number in range(6):
        made["score"](np.arange(10.0), f"run {number}")
    browser.open(made["score"].save_html(folder / "score.html"))
    browser.view("runs")
    browser.picture(DOCS / "viewer-traces.png")
    with fusec.config.override(logical_cpu_devices=2):
        browser.open(made["step"].save_html(folder / "step.html", np.arange(1e6)))
    browser.view("graph", graph="optimized")
    browser.press("0")
    browser.picture(DOCS / "viewer-devices.png")
    of_gpu = fusec.jit(made["standardise"].__wrapped__, device="/device:CUDAHOST:0")
    browser.open(of_gpu.concrete(np.ones((1000, 1000)), 0.5).save_html(folder / "gpu.html"))
    browser.view("kernels", kernel=0, node="Tanh", code="SASS")
    browser.picture(DOCS / "viewer-cuda.png")


def main() -> None:
    made = functions()
    x = np.sin(np.arange(1e6) ** 2)
    with tempfile.TemporaryDirectory() as folder, Chromium(1240, 700) as browser:
        browser.open(made["smooth"].save_html(Path(folder, "s.html"), x))
        browser.view("graph", node="fused_1")
        browser.press("0")
        browser.picture(DOCS / "viewer.png")
        browser.open(made["standardise"].save_html(
            Path(folder, "t.html"), x.reshape(1000, 1000), 0.5))
        browser.view("kernels", kernel=0, node="Tanh", code="assembly")
        browser.picture(DOCS / "viewer-kernels.png")
        browser.view("passes")
        browser.picture(DOCS / "viewer-passes.png")
        causes(browser, Path(folder), made)
        assert not browser.errors, browser.errors


if __name__ == "__main__":
    fusec.config.history = False
    main()
