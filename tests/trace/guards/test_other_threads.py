"""Names that another thread binds anew while a function is traced."""

from __future__ import annotations

import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.facts import dict_versions

GAIN = 1.0


def of_two_reads(x: Any) -> Any:
    return np.roll(x, len(x) // 2) * GAIN - x * GAIN


def right(x: np.ndarray, gain: float) -> np.ndarray:
    return np.roll(x, len(x) // 2) * gain - x * gain


def test_no_trace_of_two_moments_is_kept() -> None:
    """Each length had a trace of its own that held two gains, for good."""
    global GAIN
    function, is_over = fusec.jit(of_two_reads, reduce_retracing=False), threading.Event()

    def change() -> None:
        global GAIN
        while not is_over.is_set():
            GAIN = 1.0 + (GAIN + 1) % 3
            time.sleep(1e-4)

    thread = threading.Thread(target=change)
    thread.start()
    lengths = range(2, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is traced again and again
        try:
            for n in lengths:
                function(np.arange(float(n)))
        finally:
            is_over.set()
            thread.join()
        for n in lengths:
            for GAIN in (1.0, 2.0, 3.0):
                x = np.arange(float(n))
                np.testing.assert_allclose(function(x), right(x, GAIN))


def test_other_names_of_the_module_cost_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of the main module binds its variable all the time."""
    monkeypatch.setattr(dict_versions, "version_of", lambda namespace: time.monotonic_ns())
    function, pause = fusec.jit(of_two_reads), threading.Event()
    thread = threading.Thread(target=pause.wait)
    thread.start()
    x = np.arange(6.0)
    for _ in range(3):
        function(x)
    pause.set()
    thread.join()
    assert function.trace_count == 1
