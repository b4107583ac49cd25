"""``fusec.benchmark`` of calls with arrays of a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_arrays import as_array
from fake_cupy import FakeCupy, as_gpu

import fusec
from fusec.bench import gpu_benchmark

X = np.random.default_rng(0).normal(size=(40, 30))


def ufunc(self: Any, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """As CuPy's arrays answer NumPy's functions."""
    on_host = [x.get() if isinstance(x, type(self)) else x for x in args]
    return as_array(type(self), np.asarray(getattr(function, method)(*on_host, **kwargs)))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    monkeypatch.setattr(gpu_benchmark, "COPY_BYTES", 1 << 12)
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        fake.array = lambda x: as_array(fake.ndarray, x.get())
        fake.zeros = lambda n, dtype: as_array(fake.ndarray, np.zeros(n, dtype))
        fake.cuda.get_elapsed_time = lambda begin, end: 0.25
        yield fake


def gelu(x: Any) -> Any:
    return np.multiply(np.tanh(x), np.exp(np.negative(x)))


def test_against_cupy(cupy: FakeCupy) -> None:
    cupy.ndarray.__array_ufunc__ = ufunc
    report = fusec.benchmark(gelu, cupy.asarray(X), time_budget_s=0.01)
    assert isinstance(report, gpu_benchmark.GpuReport)
    assert report.equal is True and report.speedup > 0 and report.nbytes == 2 * X.nbytes
    text = str(report)
    assert text.startswith("gelu on the GPU: ") and "CuPy eager" in text and "of a copy" in text
    assert "one CUDA graph" in text or "1 prepared launch" in text


def test_what_cupy_cannot_run(cupy: FakeCupy) -> None:
    @fusec.jit
    def scaled(x: Any) -> Any:
        return x * 2 + gelu(x).sum(axis=0)

    report = fusec.benchmark(scaled, cupy.asarray(X), time_budget_s=0.01)
    assert report.eager is None and report.equal is None and math.isnan(report.speedup)
    assert "CuPy cannot run it: TypeError" in str(report) and "not compared" in str(report)
    assert report.first_call_ms is None, "it was compiled before"


def test_arguments_stay_as_they_are(cupy: FakeCupy) -> None:
    def doubles(x: Any) -> Any:
        x *= 2
        return x.sum()

    there = cupy.asarray(X)
    fusec.benchmark(doubles, there, time_budget_s=0.01)
    np.testing.assert_array_equal(there.get(), X)
