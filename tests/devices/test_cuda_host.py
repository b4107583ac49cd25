"""Programs on the emulated CUDA device: the bits of the CPU where nothing is summed."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.cuda.emulated_backend import BACKEND, DRIVER
from fusec.codegen.cuda.emulation import faults, launches, toolchain

DEVICE = "/device:CUDAHOST:0"
X = np.random.default_rng(0).normal(size=(7, 50))
STEPS = np.arange(24.0).reshape(4, 6)


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def steps(x: np.ndarray) -> Any:
    total = np.zeros_like(x)
    for i in range(3):
        total = total * x + np.sin(x * i)
    return np.sort(total, axis=0)[::-1] * 2


SAME_BITS: list[Callable[..., Any]] = [
    lambda x: np.exp(np.sin(x)) * x / (1 + x * x) - np.log(np.abs(x) + 1),
    lambda x: (x[:, ::2] * 2, x.T[::-1] + 1, (x > 0).any(axis=1), x.max(), x.argmin(axis=0)),
    lambda x: np.where(x > 0, x, x * 0.1)[np.argsort(x[:, 0])],
    steps,
]


@pytest.mark.parametrize("seed", [0, 3])
def test_programs(seed: int) -> None:
    with fusec.config.override(cuda_host_seed=seed):
        for f in SAME_BITS:
            before = DRIVER.launched
            got, want = fusec.jit(f, device=DEVICE)(X), fusec.jit(f)(X)
            assert DRIVER.launched > before
            for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)),
                            strict=True):
                np.testing.assert_array_equal(a, b)
                assert type(a) is type(b)
        np.testing.assert_allclose(fusec.jit(softmax, device=DEVICE)(X), softmax(X), rtol=1e-13)


def test_a_scope_of_a_part() -> None:
    @fusec.jit
    def f(x):
        with fusec.device(DEVICE):
            y = np.sin(x) * 2
        return np.sort(y, axis=1)

    np.testing.assert_array_equal(f(X), np.sort(fusec.jit(lambda x: np.sin(x) * 2)(X), axis=1))
    parts = f.concrete(X).partitions
    assert [n.op for n in parts[f"/job:localhost/task:0{DEVICE}"].nodes] == [
        "Recv", "Fused", "Send"]


def test_it_is_listed_and_shows_its_kernels(tmp_path: Path) -> None:
    assert DEVICE in str(fusec.devices())
    assert "CUDAHOST" in [device.type for device in fusec.devices()]
    f = fusec.jit(lambda x: np.cos(x) * 3, device=DEVICE)
    f(X)
    (kernel,) = f.concrete(X).kernels
    with fusec.profile(str(tmp_path / "trace.json")):
        f(X)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    shown = {e["name"] for e in events if e.get("cat") == "kernel"}
    assert {kernel.name, f"{kernel.name} runs"} <= shown
    with fusec.config.override(history=True):
        f(X)
    assert any("CUDAHOST:0" in str(row.device) for row in fusec.history())
    assert "CUDAHOST:0" in str(fusec.explain(f, X))


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_candidates", list)
    toolchain.toolchain.cache_clear()
    BACKEND.clear()
    monkeypatch.setattr(DRIVER, "_loaded", {})
    try:
        with pytest.raises(toolchain.NoCompilerError, match="pip install ziglang"):
            fusec.jit(lambda x: np.sin(x) * 0.123, device=DEVICE)(X)
    finally:
        toolchain.toolchain.cache_clear()


def test_a_fault_is_the_calls_error_and_the_next_call_is_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = fusec.jit(lambda x: np.sin(x).sum(axis=0) + 1, device=DEVICE)
    want = f(X)

    def run(*args: Any) -> None:
        raise faults.KernelFault("kernel nest_0_0 reads outside of its buffers")

    with monkeypatch.context() as faulty:
        faulty.setattr(launches.EmulatedLaunch, "run", run)
        with pytest.raises(faults.KernelFault, match="nest_0_0 reads outside") as caught:
            f(X)
    text = str(caught.value)
    assert "it is a part of fused" in text and "in <lambda>" in text and "f = fusec.jit" in text
    np.testing.assert_array_equal(f(X), want)


def test_its_memory_is_given_back() -> None:
    gc.collect()
    DRIVER.synchronize()
    before = DRIVER.arena.used
    f = fusec.jit(lambda x: np.sin(x) + x.sum(), device=DEVICE)
    f(X)
    del f
    gc.collect()
    DRIVER.synchronize()
    assert DRIVER.arena.used == before


def test_out_of_memory_names_what_was_asked() -> None:
    f = fusec.jit(lambda x: np.sin(x), device=DEVICE)
    limit, DRIVER.arena.limit = DRIVER.arena.limit, DRIVER.arena.used + 1000
    try:
        with pytest.raises(MemoryError, match="the emulated device is out of memory"):
            f(X)
    finally:
        DRIVER.arena.limit = limit
    np.testing.assert_array_equal(f(X), fusec.jit(lambda x: np.sin(x))(X))


def test_stage_times_name_the_compiler() -> None:
    f = fusec.jit(lambda x: np.tanh(x) + 1, device="/device:CUDAHOST:0")
    f(np.ones(1000))
    times = f.traces[0].times
    assert times["llvm"] == 0.0 < times["c++"]
    assert ", c++ " in str(fusec.explain(f, np.ones(1000)))


def given_by_a_branch(x: np.ndarray) -> Any:
    most = np.array(0.5)
    if x.sum() > 3:
        most = np.array(x.max())
    return x + most


def changed_in_branches(x: np.ndarray) -> Any:
    most = np.array(0.5)
    if x.sum() > 3:
        if x.max() > 4:
            most += x.max()
        most *= 2
    return x + most


def changed_in_a_loop(x: np.ndarray) -> Any:
    most = np.array(0.5)
    for i in range(int(x[1, 1]) // 4):
        if x[i, 0] > 2:
            most += x[i].max()
    return x + most


@pytest.mark.parametrize("f", [given_by_a_branch, changed_in_branches, changed_in_a_loop])
def test_arrays_of_rank_0_of_branches_and_loops(f: Callable[..., Any]) -> None:
    """Plans have them on the host, kernels of a branch may have them on the device."""
    jitted = fusec.jit(f, device=DEVICE)
    for x in (STEPS, -STEPS, STEPS):
        np.testing.assert_array_equal(jitted(x), f(x))
