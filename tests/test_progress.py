"""The progress on stderr of a compilation that takes long: lines, or a bar on a terminal."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest

import fusec
from fusec.core import log
from fusec.core.display import progress


class Stream(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def told(monkeypatch):
    """The output while a function of two stages is compiled."""
    def run(is_terminal: bool = False, wait: float = 0.0, level: int = log.WARN) -> str:
        stream = Stream(is_terminal)
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr(progress.config, "log_level", level)
        with progress.compiling("simulate"):
            progress.stage("kernels", 17, 40, is_long=True)
            time.sleep(wait)
            progress.stage("LLVM on 3 loops")
            time.sleep(wait)
        return stream.getvalue()

    monkeypatch.setattr(progress, "OFTEN", 0.02)
    monkeypatch.setattr(progress, "REDRAW", 0.02)
    return run


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress.config, "progress", 1)
    monkeypatch.setattr(progress.Compilation, "seconds", lambda work: 1.5)


def test_lines_say_what_and_how_far(told, at_once):
    lines = told(wait=0.1).splitlines()
    assert lines[0] == "fusec: compiling simulate for 2 s: kernels, 17 of 40"
    assert "fusec: compiling simulate for 2 s: LLVM on 3 loops" in lines
    assert lines[-1] == "fusec: simulate: compiled for 1.5 s"


def test_a_terminal_shows_a_bar_and_then_nothing(told, at_once):
    text = told(is_terminal=True, wait=0.1)
    assert f"simulate, 1.5 s: [{'=' * 10:24}] kernels, 17 of 40" in text
    assert "\n" not in text and text.endswith("\r\x1b[K")


def test_what_is_quick_or_silent_tells_nothing(told, monkeypatch):
    monkeypatch.setattr(progress.config, "progress", 3600)
    threads = threading.active_count()
    assert told() == "" and threading.active_count() == threads
    monkeypatch.setattr(progress.Compilation, "seconds", lambda work: 1.5)
    monkeypatch.setattr(progress.config, "progress", 1)
    assert told(wait=0.05, level=log.SILENT) == ""
    monkeypatch.setattr(progress.config, "progress", 0)
    assert told(wait=0.05) == ""


def test_a_stream_that_is_gone_fails_nothing(at_once, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with progress.compiling("simulate"):
        progress.stage("kernels", is_long=True)
        time.sleep(0.05)


def test_stages_of_a_compilation_and_of_each_thread(monkeypatch):
    seen: dict[str, set[str]] = {}
    enter = progress.Compilation.enter

    def noted(work, name, *args, **kwargs):
        seen.setdefault(work.title, set()).add(name.split(" of ")[0])
        enter(work, name, *args, **kwargs)

    monkeypatch.setattr(progress.Compilation, "enter", noted)

    def one(x):
        return np.sin(x) + 1.0

    def other(x):
        for _ in range(30):
            x[1:] = x[:-1] * 0.5
        return x

    threads = [threading.Thread(target=fusec.jit(f), args=(np.ones(7),)) for f in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"pass fusion", "kernels"} <= seen["one"] and {"pass fusion"} <= seen["other"]
    progress.stage("nobody's")  # outside of a compilation
    assert set(seen) == {"one", "other"}
