"""The driver of GPUs, against a CuPy that is the emulated device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_cupy import FakeCupy, installed
from kernel_harness import build, kernels_of

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.backend import CudaBackend
from fusec.codegen.cuda.driver.cupy_driver import CupyDriver
from fusec.codegen.cuda.gpu_backend import GpuBackend
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.core import gpus
from fusec.core.gpus import NoGpuError
from fusec.runtime.devices import registry


def test_nests_run_through_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).standard_normal((50, 40))
    (kernel,) = kernels_of(build(lambda b, v: [b.emit("Exp", v), b.emit("Sum", v, axes=(1,))], x))
    outs = [np.empty(b.shape, b.dtype) for b in kernel.buffers[1:]]
    with installed(FakeCupy(), monkeypatch) as fake:
        backend = CudaBackend("gpu in tests", CupyDriver)
        forms = backend.specialise(kernel, [a.strides for a in (x, *outs)])
        for code in backend.compile(forms, CompileStats()):
            assert code([x, *outs], {})
    np.testing.assert_allclose(outs[0], np.exp(x), rtol=1e-14)
    np.testing.assert_allclose(outs[1], x.sum(1), rtol=1e-12)
    launches = [c for c in fake.calls if c.startswith("nest")]
    first = fake.calls.index(launches[0])
    assert "to host" not in fake.calls[:first] and "to device" not in fake.calls[first:]


def test_where_arrays_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(FakeCupy(), monkeypatch):
        driver = CupyDriver()
        first, second = driver.allocate(80), driver.allocate(800)
        there = np.ndarray(5, np.float64, np.asarray(_at(second, 800)).data, offset=16)
        assert driver.address_of(there) == second + 16
        assert driver.address_of(np.zeros(3)) is None
        of_cupy = _at(12345, 8)
        of_cupy.__cuda_array_interface__ = of_cupy.__array_interface__
        assert driver.address_of(of_cupy) == 12345
        driver.free(second)
        assert driver.address_of(there) is None and driver.address_of(_at(first, 8)) == first


class _at:
    """Memory at an address, as arrays say it."""

    class ctypes:
        data = 0

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__: dict[str, Any] = {
            "data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
        self.ctypes = type("ctypes", (), {"data": address})


def test_a_full_pool_is_emptied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(FakeCupy(room=1000), monkeypatch) as fake:
        driver = CupyDriver()
        fake.cached = 5000
        held = driver.allocate(4000)
        assert fake.calls == ["free_all_blocks"]
        with pytest.raises(MemoryError, match="no room for 99999 bytes") as error:
            driver.allocate(99999)
        assert "largest arrays of fusec" in str(error.value) and "4000" in str(error.value)
        driver.free(held)
        driver.free(driver.allocate(10))  # it is usable afterwards


def test_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "package", lambda: None)
    with pytest.raises(NoGpuError, match=r"pip install 'cupy-cuda12x"):
        CupyDriver()
    assert gpus.count() == 0
    for fake, words in ((FakeCupy(count=-1), "cudaErrorInsufficientDriver.*"),
                        (FakeCupy(count=0), "finds no GPU"),
                        (FakeCupy(capability="61"), "too old.*")):
        with installed(fake, monkeypatch):
            with pytest.raises(NoGpuError, match=words):
                CupyDriver()
            assert gpus.missing() and not gpus.count()  # doctor says it, and scopes


def damped(x: np.ndarray) -> Any:
    y = np.exp(-x) * np.sin(x)
    return y, np.partition(y.sum(axis=0), 3), y.max()


def test_a_program_runs_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels there, a library's function on the CPU, copies between: no array of the GPU is
    touched by the host, whose process would end."""
    x = np.random.default_rng(2).uniform(0, 3, (30, 20))
    with installed(FakeCupy(), monkeypatch) as fake:
        monkeypatch.setitem(backends._loaded, "gpu", GpuBackend())
        registry.forget("gpu")
        try:
            memory = {device.type: device.memory_bytes for device in fusec.devices()}
            assert memory["GPU"] == 1 << 30 and memory["CUDAHOST"] == memory["CPU"] // 2
            f = fusec.jit(damped, device="/device:GPU:0")
            for _ in range(2):
                for got, want in zip(f(x), damped(x), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-12)
            assert sum(call.startswith("nest") for call in fake.calls) >= 4
        finally:
            monkeypatch.undo()
            registry.forget("gpu")


def test_a_gpu_that_is_not_there_is_an_error_of_the_scope() -> None:
    """It names the missing part."""
    if not gpus.count():
        with pytest.raises(ValueError, match="there is no device /device:GPU:0") as error:
            fusec.jit(damped, device="/device:GPU:0")(np.ones((3, 3)))
        assert gpus.missing() in str(error.value)
