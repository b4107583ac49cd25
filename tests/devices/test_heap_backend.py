"""A new device is a file and a line: what a program does on one of under 150 lines."""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import heap_backend
import numpy as np
import pytest
from heap_backend import BACKEND, KIND, Heap

import fusec
from fusec.codegen import backends

sys.path.insert(0, str(Path(__file__).parents[1] / "variables"))

from random_programs import failure

HEAP = "/device:HEAP:0"
X = np.linspace(-1.0, 2.0, 24).reshape(4, 6)


@pytest.fixture(autouse=True)
def heap(monkeypatch: pytest.MonkeyPatch) -> Heap:
    monkeypatch.setitem(backends.KINDS, "heap", KIND)
    return BACKEND.arrays.heap


@pytest.fixture
def runs_there() -> Iterator[None]:
    before = BACKEND.ran
    yield
    assert BACKEND.ran > before


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def in_turn(x: np.ndarray) -> Any:
    total = np.zeros_like(x)
    for i in range(4):
        total = total * x + np.sin(x * i) if x[i, 0] < 0 else total - x
    return total[::-1].T, total.argmax()


def while_it_grows(x: np.ndarray) -> Any:
    n = 0
    while x.sum() < 100:
        x = x * 1.5 + 1
        n += 1
    return x, n


def through_libraries(x: np.ndarray) -> Any:
    return np.sort(np.exp(x) @ x.T, axis=0) * 2, np.linalg.norm(x + 1)


def half_there(x: np.ndarray) -> Any:
    with fusec.device(HEAP):
        y = np.cumsum(x, axis=1)
    z = np.sort(y, axis=0)
    with fusec.device("HEAP"):
        return np.where(y > 0, z, -z), z[:, ::2]


PROGRAMS: list[Callable[..., Any]] = [
    softmax, in_turn, while_it_grows, through_libraries, half_there,
    lambda x: (x[:, 1::2].T + 1, np.float32(x) * 2, (x > 0).any(axis=1), x[:0], x.sum()),
    lambda x: np.stack([x, x * 1j])[:, ::-1].copy(),
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f: Callable[..., Any], runs_there: None) -> None:
    with fusec.device(HEAP if f is not half_there else "CPU:0"):
        jitted = fusec.jit(f)
        results = [jitted(x) for x in (X, X[::-1], np.asfortranarray(X))]
    for got, x in zip(results, (X, X[::-1], X), strict=True):
        want = f(x)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
            assert type(a) is type(b) and np.shape(a) == np.shape(b)


def test_gradients(runs_there: None) -> None:
    def loss(w, x):
        total = 0.0
        for i in range(3):
            x = np.tanh(x * w + i)
            total = total + (x ** 2).sum() if x[0, 0] < 0 else total + x.mean()
        return total

    w = np.linspace(0.5, 1.5, 6)
    with fusec.device(HEAP):
        value, gradient = fusec.jit(fusec.value_and_grad(loss))(w, X)
    step = 1e-6 * np.eye(6)
    numeric = [(loss(w + d, X) - loss(w - d, X)) / 2e-6 for d in step]
    np.testing.assert_allclose(value, loss(w, X), rtol=1e-12)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_programs_with_variables(runs_there: None) -> None:
    with fusec.device(HEAP):
        assert not [text for seed in range(40) if (text := failure(10**6 + seed))]


def test_it_is_asked_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, timelines, reports, errors and costs know it from its line and its attributes."""
    (listed,) = (d for d in fusec.devices() if d.type == "HEAP")
    assert listed.memory_bytes == heap_backend.NBYTES and listed.bandwidth is None
    f = fusec.jit(half_there)
    with fusec.profile(str(tmp_path / "trace.json")):
        f(X)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert HEAP in {
        e["args"]["name"] for e in events if "name" in e.get("args", {})}
    report = str(fusec.explain(f, X))
    assert "HEAP:0 -> CPU:0" in report and "CPU:0 -> HEAP:0" in report
    monkeypatch.delitem(backends.KINDS, "heap")
    with pytest.raises(ValueError, match="there is no device /device:HEAP:0"):
        fusec.jit(half_there)(X)


def test_the_host_cannot_touch_its_arrays() -> None:
    """Its process ends, before it reads or writes anything."""
    code = ("import faulthandler, heap_backend, numpy\n"
            "faulthandler.disable()\n"
            "array = heap_backend.BACKEND.arrays.empty((3, 4), numpy.dtype('f8'))\n"
            "print(array.T[1:].shape, flush=True)\n"
            "print(array[0, 0], flush=True)")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.returncode and done.stdout == "(3, 3)\n", done


def test_full_memory_is_the_calls_error(heap: Heap) -> None:
    f = fusec.jit(softmax, device=HEAP)
    f(X)
    gc.collect()
    taken = []
    with pytest.raises(MemoryError, match="the heap has no room"):
        while True:
            taken.append(heap_backend.Block(heap, 1 << 22))
    small = [heap_backend.Block(heap, 64) for _ in range((heap_backend.NBYTES - heap.used) // 64)]
    with pytest.raises(MemoryError, match="the heap has no room"):
        f(X)
    del taken, small
    np.testing.assert_allclose(f(X), softmax(X), rtol=1e-12)


def test_ranges_of_the_heap_are_apart() -> None:
    generator, heap = random.Random(1), Heap(1 << 16)
    held: list[heap_backend.Range] = []
    for _ in range(2000):
        if held and generator.random() < 0.5:
            heap.drop(held.pop(generator.randrange(len(held))))
        else:
            nbytes = generator.randrange(0, 1 << 11)
            try:
                begin, end = heap.allocate(nbytes)
            except MemoryError:
                continue
            assert end - begin >= nbytes and begin % heap_backend.ALIGNMENT == 0
            assert all(end <= low or high <= begin for low, high in held)
            held.append((begin, end))
        assert heap.used == sum(end - begin for begin, end in held)


def test_it_is_one_short_file() -> None:
    assert len(Path(heap_backend.__file__).read_text().splitlines()) < 150
