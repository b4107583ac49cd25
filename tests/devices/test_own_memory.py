"""A device whose kernels read memory of their own: arrays are copied there and back."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.driver.arrays import DriverArrays
from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.kernels.kernel_nodes import is_of_kernels
from fusec.codegen.reference_backend import ReferenceBackend
from fusec.ir.device_names import JOB, TASK, DeviceName
from fusec.runtime.devices import registry
from fusec.runtime.devices.device import Device

AWAY = "/device:AWAY:0"


class AwayBackend(ReferenceBackend):
    """The oracle on a device's memory, which refuses to be given the host's."""

    name = "away"

    def __init__(self) -> None:
        self.driver = EmulatedDriver(seed=3)
        self.arrays = DriverArrays(self.driver)
        self.calls = 0

    def has_kernel(self, node: Any) -> bool:
        return is_of_kernels(node)

    def runs(self, kernel: Any) -> Any:
        run = super().runs(kernel)

        def on_device(buffers: Sequence[np.ndarray], sizes: Any) -> bool:
            arrays = [b for b in buffers if b.ndim and b.size]
            assert all(self.driver.address_of(a) is not None for a in arrays)
            self.driver.synchronize()
            self.calls += 1
            return run(buffers, sizes)

        return on_device


@pytest.fixture(autouse=True)
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwayBackend]:
    backend = AwayBackend()
    monkeypatch.setitem(backends._loaded, "away", backend)
    registry.register("AWAY", lambda: [Device(
        DeviceName(JOB, TASK, "AWAY", 0), "away", memory="away:0", is_automatic=False,
        runs_kernels_alone=True)])
    yield backend
    registry.register("AWAY", list)


def check(function: Any, *args: Any, **options: Any) -> Any:
    jitted = fusec.jit(function, device=AWAY, **options)
    for _ in range(2):
        got = jitted(*args)
    want = function(*args)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert type(a) is type(b) and np.shape(a) == np.shape(b)
    return jitted


X = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("x", [
    X, X[:, ::2], X[::-1], X.T, X[::2].T[::3], np.broadcast_to(np.arange(3.0), (4, 3)), X[:0],
    X[:1], np.float32(X)], ids=str)
def test_arguments_of_any_layout(x: np.ndarray, away: AwayBackend) -> None:
    check(lambda x: (np.sin(x) + 1, x * 2), x)
    assert away.calls


def test_what_has_no_kernel_runs_on_the_host(away: AwayBackend) -> None:
    def f(x):
        y = np.exp(x - x.max(axis=1, keepdims=True))
        z = np.sort(y @ y.T, axis=0)
        return z / z.sum(), y

    jitted = check(f, X)
    parts = jitted.concrete(X).partitions
    ops = {name.rpartition("/")[2]: {n.op for n in graph.nodes} for name, graph in parts.items()}
    assert {"MatMul", "Sort"} <= ops["device:CPU:0"] and "Fused" in ops["device:AWAY:0"]
    assert not {"MatMul", "Sort"} & ops["device:AWAY:0"]


def test_numbers_scalars_and_sums() -> None:
    check(lambda x, n: (x.sum() * n, x.mean(), (x > 3).any(), x.argmax()), X, 3)


def test_loops_and_branches() -> None:
    def f(x, n):
        total = np.zeros_like(x)
        for i in range(n):
            total = total + np.sin(x * i)
        if total.sum() > 0:
            total = total * 2
        return total

    check(f, X, 5)
    assert np.isfinite(fusec.jit(f, device=AWAY)(X, 3)).all()


def test_arguments_that_are_written(away: AwayBackend) -> None:
    def f(x):
        x *= 2
        x[1] = 7
        return x.sum()

    mine, numpys = X.copy(), X.copy()
    assert fusec.jit(f, device=AWAY)(mine) == f(numpys)
    np.testing.assert_array_equal(mine, numpys)
    assert away.calls


def test_layouts_of_results() -> None:
    def f(x):
        return np.sin(x).T, np.cos(x)[:, 1:3], np.stack([x, x + 1])

    got, want = fusec.jit(f, device=AWAY)(X), f(X)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b)
        assert a.strides == b.strides and a.flags.writeable


def test_memory_is_given_back(away: AwayBackend) -> None:
    jitted = fusec.jit(lambda x: np.sin(x).sum(axis=0), device=AWAY)
    jitted(X)
    gc.collect()
    away.driver.synchronize()
    assert away.driver.arena.used == 0


def test_errors_of_kernels() -> None:
    def f(x, i):
        return x[i] + 1

    jitted = fusec.jit(f, device=AWAY)
    index = np.array([1, 2])
    np.testing.assert_array_equal(jitted(X, index), f(X, index))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        jitted(X, np.array([1, 9]))
    np.testing.assert_array_equal(jitted(X, index), f(X, index))


def test_half_of_the_bits_on_the_way() -> None:
    @fusec.jit
    def f(x):
        with fusec.device("CPU:0", sends="bfloat16"):
            y = np.sin(x)
        with fusec.device(AWAY, sends="bfloat16"):
            z = y * 2
        with fusec.device("CPU:0"):
            return np.sort(z)

    x = np.float32(X)
    np.testing.assert_allclose(f(x), np.sort(np.sin(x) * 2), rtol=2e-2)


def test_variables() -> None:
    count = fusec.Variable(np.zeros(6))

    @fusec.jit
    def f(x):
        with fusec.device(AWAY):
            total = x.sum(axis=0)
        count.assign_add(total)
        with fusec.device(AWAY):
            return count.read_value() * 2

    f(X)
    np.testing.assert_array_equal(f(X), 4 * X.sum(axis=0))
    np.testing.assert_array_equal(count.numpy(), 2 * X.sum(axis=0))


def test_many_sizes() -> None:
    def f(x):
        y = np.cumsum(x, axis=0)[::2]
        return y.T * 3, y.max(axis=0)

    jitted = fusec.jit(f, device=AWAY)
    for rows in (2, 3, 7, 8, 20):
        x = np.arange(6.0 * rows).reshape(rows, 6)
        for a, b in zip(jitted(x), f(x), strict=True):
            np.testing.assert_array_equal(a, b)
