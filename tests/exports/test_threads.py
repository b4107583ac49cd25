"""Libraries whose calls run in the threads of their caller."""

from __future__ import annotations

import ctypes
import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .calling import CFunction
from .test_c_library import SPEC, V3, axpy, centred
from .test_c_library import pytestmark as needs_v3

pytestmark = needs_v3
rng = np.random.default_rng(42)
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64)


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> Any:
    vector = SPEC((None,))
    return fusec.export_c({"axpy": (axpy, (2.5, vector, vector)),
                           "centred": (centred, (SPEC((None, 70)),))},
                          tmp_path_factory.mktemp("c") / "shared", V3, threads="callback")


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_any_split_has_the_same_bits(library: Any, parts: int) -> None:
    handle = ctypes.CDLL(str(library.shared))
    called = {f.name: CFunction(handle, f) for f in library.functions}
    seen: list[tuple[int, int]] = []

    @RUN
    def run(context: int, body: Any, argument: int, tasks: int) -> None:
        edges = np.linspace(0, tasks, parts + 1).astype(int)
        threads = [threading.Thread(target=body, args=(argument, int(a), int(b)))
                   for a, b in itertools.pairwise(edges)][::-1]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen.append((context, tasks))

    x, y, z = rng.random(300_000), rng.random(300_000), rng.random((20_000, 70))
    alone = called["axpy"]([1.5, x, y])[1][0], *called["centred"]([z])[1]
    handle.shared_set_parallel(run, ctypes.c_void_p(77))
    try:
        split = called["axpy"]([1.5, x, y])[1][0], *called["centred"]([z])[1]
        assert seen and all(context == 77 and tasks > 1 for context, tasks in seen)
        before = len(seen)
        called["axpy"]([1.5, x[:9], y[:9]])
        assert len(seen) == before  # one task
    finally:
        handle.shared_set_parallel(None, None)
    want = fusec.jit(axpy)(1.5, x, y), *fusec.jit(centred)(z)
    for a, b, c in zip(alone, split, want, strict=True):
        assert np.array_equal(np.ravel(a), np.ravel(c))
        assert np.array_equal(np.ravel(b), np.ravel(c))


def test_the_header_says_how(library: Any) -> None:
    assert "void shared_set_parallel(" in library.header.read_text()


def test_a_library_without_threads_has_no_such_function(tmp_path: Path) -> None:
    made = fusec.export_c({"axpy": (axpy, (2.5, SPEC((4,)), SPEC((4,))))}, tmp_path / "lib", V3)
    assert b"set_parallel" not in made.shared.read_bytes()
