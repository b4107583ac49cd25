"""NVRTC compiles the back end's sources, for the A100 and the H100, where its library is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_harness import build
from kernel_harness import kernels_of
from test_cpu_ops import emit_all
from test_cuda_elementwise import rows_of

import fusec
from fusec import config
from fusec.codegen import backends
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.driver.nvrtc import KernelUsage, NoNvrtcError
from fusec.codegen.cuda.kernels.kernel_sources import module_of, write_form
from fusec.codegen.cuda.module import CudaModule
from fusec.codegen.kernels.specialise import specialise
from fusec.errors import InternalError

needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra cuda")


def written(function: Any, *arrays: np.ndarray) -> CudaModule:
    kernels = []
    for number, kernel in enumerate(kernels_of(build(function, *arrays))):
        strides = [np.empty(b.shape, b.dtype).strides for b in kernel.buffers]
        for part, nest in enumerate(kernel.nests):
            kernels += write_form(specialise(kernel, nest, strides), "i32", f"k{number}_{part}")
    return module_of(kernels)


def every_kind_of_nest(b: Any, x: Any) -> list[Any]:
    rows = b.emit("Sum", b.emit("Exp", x), axes=(1,))
    return [b.emit("Sub", b.emit("Exp", x), b.emit("ExpandDims", rows, axes=(1,))),
            b.emit("ArgMax", x, axes=(0,)), b.emit("Sum", x, axes=(0, 1)), b.emit("Sin", x)]


@needs_nvrtc
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nests_compile_and_fit(architecture: str) -> None:
    module = written(every_kind_of_nest, np.zeros((40, 64), np.float32))
    compiled = nvrtc.compile(module, architecture)
    assert set(compiled.usage) == {k.name for k in module.kernels} and len(module.kernels) >= 3
    for kernel in module.kernels:
        usage = compiled.usage[kernel.name]
        assert 0 < usage.registers <= 65_536 // kernel.max_threads
        assert usage.shared_bytes == kernel.static_shared
        assert usage.spill_stores == usage.spill_loads == 0
    assert compiled.cubin.startswith(b"\x7fELF")
    assert "ld.global.v4.f32" in compiled.ptx and "st.global.v4.f32" in compiled.ptx
    assert f".target {architecture}" in compiled.ptx


@needs_nvrtc
def test_nothing_is_contracted() -> None:
    """A product and a sum stay two instructions."""
    x = np.zeros(100)
    module = written(lambda b, x: b.emit("Add", b.emit("Mul", x, x), x), x)
    assert "fma" not in nvrtc.compile(module, "sm_80").ptx


@needs_nvrtc
def test_scalar_ops_compile() -> None:
    dtype = np.dtype("f4")
    args = [np.ones(10, dtype)] * 2
    module = written(emit_all(rows_of(dtype, 2)), *args)
    assert len(nvrtc.compile(module, "sm_90").ptx) > 1000


@needs_nvrtc
def test_a_refused_source_is_a_defect_with_nvrtcs_words() -> None:
    with pytest.raises(InternalError, match="identifier \"nonsense\" is undefined"):
        nvrtc.compile(CudaModule("int x = nonsense;", ()), "sm_80")


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_kernels_carry_their_texts(tmp_path: Path) -> None:
    with backends.using("cudahost"):
        f = fusec.jit(softmax)
        f(np.ones((3, 5)))
    (kernel,) = f.traces[0].kernels
    assert 'extern "C" __global__' in kernel.asm["cu"] and "math_exp_f64" in kernel.asm["cu"]
    if nvrtc.is_available():
        assert ".visible .entry" in kernel.asm["ptx"]
    with config.override(dump_dir=str(tmp_path)), backends.using("cudahost"):
        fusec.jit(softmax)(np.ones((4, 5)))
    (file,) = tmp_path.glob("*/*.cu")
    assert "__global__" in file.read_text()


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_library", lambda: None)
    assert not nvrtc.is_available()
    with pytest.raises(NoNvrtcError, match="pip install nvidia-cuda-nvrtc-cu12"):
        nvrtc.compile(CudaModule("", ()), "sm_80")


def test_the_older_of_two_packages_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the one that the extra installs others' packages bring one of a later CUDA, whose code
    an older driver refuses."""
    for place in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    assert [Path(p).name for p in nvrtc._places()][:2] == ["libnvrtc.so.12", "libnvrtc.so.13"]


LOG = """
ptxas info    : 77 bytes gmem
ptxas info    : Compiling entry function 'soft_0' for 'sm_80'
ptxas info    : Function properties for soft_0
    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem, 404 bytes cmem[0]
"""


def test_what_a_kernel_takes() -> None:
    assert nvrtc.usage_of(LOG) == {"soft_0": KernelUsage(40, 256, 8, 4)}
    assert KernelUsage(32, 0, 0, 0).occupancy(256) == 1.0
    assert KernelUsage(40, 0, 0, 0).occupancy(256) == 0.75  # 6 blocks of 8 warps
    assert KernelUsage(32, 40 << 10, 0, 0).occupancy(256) == 0.5  # 4 blocks
