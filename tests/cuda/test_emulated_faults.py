"""Illegal accesses and launches of kernels, and the emulated device's messages about them."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Run, module

from fusec import config
from fusec.codegen.cuda.emulation import loading, toolchain
from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.cuda.emulation.faults import KernelFault
from fusec.codegen.cuda.emulation.toolchain import CompilationError, NoCompilerError

SOURCE = r"""
extern "C" __global__ void beyond(const double *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = x[i];
}
extern "C" __global__ void before(double *y) { y[(int)threadIdx.x - 1] = 1; }
extern "C" __global__ void another(double *x, double *y) {  // y lies somewhere; x does not reach it
  x[y - x] = 1;
  x[8] = 1;
}
extern "C" __global__ void reads_only(const double *x) { ((double *)x)[threadIdx.x] = 1; }
extern "C" __global__ void overrun(double *y) {
  __shared__ double first[16], second[16];
  second[threadIdx.x] = 1;
  first[threadIdx.x] = 2;
  __syncthreads();
  y[threadIdx.x] = first[0] + second[0];
}
extern "C" __global__ void dynamic(double *y) {
  extern __shared__ unsigned long long tile[];
  tile[threadIdx.x] = 1;
  y[threadIdx.x] = 1;
}
extern "C" __global__ void race(double *y) {
  __shared__ double tile[64];
  tile[threadIdx.x] = 1;
  y[threadIdx.x] = tile[(threadIdx.x + 1) % blockDim.x];
}
extern "C" __global__ void second_race(double *y) {
  __shared__ double tile[64];
  tile[threadIdx.x] = 1;
  __syncthreads();
  double next = tile[(threadIdx.x + 1) % blockDim.x];
  tile[threadIdx.x] = next;
  y[threadIdx.x] = next;
}
extern "C" __global__ void race_of_warps(double *y) {
  __shared__ double tile[64];
  tile[threadIdx.x] = 1;
  __syncwarp();
  y[threadIdx.x] = tile[(threadIdx.x + 1) % blockDim.x];
}
extern "C" __global__ void race_with_atomic(int *y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  atomicAdd(&count, 1);
  y[threadIdx.x] = 0;
}
extern "C" __global__ void leaves(double *y) {
  if (threadIdx.x >= 7) return;
  __syncthreads();
  y[threadIdx.x] = 1;
}
extern "C" __global__ void elsewhere(double *y) {
  if (threadIdx.x % 2) {
    y[threadIdx.x] = 1;
    __syncthreads();
  } else
    __syncthreads();
}
extern "C" __global__ void split_warp(int *y) {
  if (threadIdx.x < 3) y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1);
  else __syncthreads();
}
extern "C" __global__ void not_in_mask(int *y) { y[threadIdx.x] = __shfl_sync(1u, 1, 0); }
extern "C" __global__ void misaligned(char *y) { *(double *)(y + 4) = 1; }
extern "C" __global__ void misaligned_pack(double *y) { *(double2 *)(y + 1) = make_double2(1, 2); }
extern "C" __global__ void misaligned_atomic(char *y) { atomicAdd((int *)(y + 2), 1); }
extern "C" __global__ void wraps(int *y) { y[0] = y[0] + 1; }
extern "C" __global__ void divides(int *y) { y[0] = 1 / y[0]; }
extern "C" __global__ void shifts(int *y) { y[0] = 1 << y[0]; }
extern "C" __global__ void converts(double *y) { y[1] = (int)y[0]; }
extern "C" __global__ void traps(int *y) { if (threadIdx.x == 3) __trap(); }
extern "C" __global__ void __launch_bounds__(64) bounded(int *y) { y[threadIdx.x] = 1; }
"""
F64, I32 = np.float64, np.int32


def message(seed: int, kernel: str, grid: int, block: int, *args: object, shared: int = 0) -> str:
    run = Run(SOURCE, seed)
    with pytest.raises(KernelFault) as caught:
        run(kernel, grid, block, *args, shared=shared)
        run.driver.synchronize()
    fine = run("bounded", 1, 4, np.zeros(4, I32))[0]
    assert (fine == 1).all(), "the device is usable after a fault"
    return str(caught.value)


@pytest.mark.parametrize("seed", [0, 5])
def test_buffers(seed: int) -> None:
    text = message(seed, "beyond", 2, 8, np.ones(10), np.ones(10), 10)
    assert text.startswith("kernel beyond reads outside of its buffers")
    assert "8 bytes, +80 bytes from the start of argument 0, which has 80" in text
    assert "thread: (2, 0, 0) of block (1, 0, 0)" in text
    text = message(seed, "before", 1, 4, np.ones(4))
    assert "writes outside of its buffers" in text and "-8 bytes from the start" in text
    text = message(seed, "another", 1, 1, np.ones(8), np.ones(8))
    assert "+64 bytes from the start of argument 0, which has 64" in text
    text = message(seed, "reads_only", 1, 1, np.ones(8))
    assert "writes to memory that it says it only reads" in text


@pytest.mark.skipif(toolchain.addr2line() is None, reason="lines need addr2line")
def test_lines_of_the_source() -> None:
    assert "line:   4: if (i <= n) y[i] = x[i];" in message(
        0, "beyond", 2, 8, np.ones(10), np.ones(10), 10)


@pytest.mark.parametrize("seed", [0, 5])
def test_shared_memory(seed: int) -> None:
    text = message(seed, "overrun", 1, 17, np.ones(17))
    assert "writes outside of its shared memory" in text and "(16, 0, 0)" in text
    Run(SOURCE, seed)("overrun", 1, 16, np.ones(16))
    text = message(seed, "dynamic", 1, 17, np.ones(17), shared=128)
    assert "writes outside of its shared memory" in text and "(16, 0, 0)" in text
    Run(SOURCE, seed)("dynamic", 1, 16, np.ones(16), shared=128)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("kernel", ["race", "second_race", "race_of_warps", "race_with_atomic"])
def test_races(kernel: str, seed: int) -> None:
    text = message(seed, kernel, 1, 64, np.ones(64, I32 if kernel.endswith("atomic") else F64))
    assert text.startswith(f"kernel {kernel} has a race in shared memory")
    assert "that the other thread has used since the last barrier" in text


def test_no_race_within_one_thread() -> None:
    for kernel in ("race", "second_race", "race_of_warps"):
        Run(SOURCE)(kernel, 3, 1, np.ones(1))


@pytest.mark.parametrize("seed", [0, 5])
def test_barriers(seed: int) -> None:
    text = message(seed, "leaves", 1, 64, np.ones(64))
    assert text.startswith("kernel leaves has a barrier that not all threads reach")
    assert "has left the kernel" in text
    text = message(seed, "elsewhere", 1, 64, np.ones(64))
    assert "waits at line" in text and "not all threads reach" in text
    text = message(seed, "split_warp", 1, 32, np.ones(32, I32))
    assert "not all threads reach" in text
    assert "without the calling thread" in message(seed, "not_in_mask", 1, 2, np.ones(2, I32))


def test_alignment() -> None:
    text = message(0, "misaligned", 1, 1, np.ones(16, np.int8))
    assert "not aligned" in text and "8 bytes at" in text
    assert "16 bytes at" in message(0, "misaligned_pack", 1, 1, np.ones(4))
    assert "4 bytes at" in message(0, "misaligned_atomic", 1, 1, np.ones(8, np.int8))


@pytest.mark.parametrize(("kernel", "array"), [
    ("wraps", np.array([2 ** 31 - 1], I32)), ("divides", np.zeros(1, I32)),
    ("shifts", np.array([32], I32)), ("converts", np.array([1e300, 0]))])
def test_undefined_arithmetic(kernel: str, array: np.ndarray) -> None:
    text = message(0, kernel, 1, 1, array)
    assert f"kernel {kernel} computes what C++ leaves undefined" in text
    assert f"void {kernel}" in text, "the line is the source's"


def test_traps_and_sizes() -> None:
    assert "has stopped itself" in message(0, "traps", 1, 4, np.zeros(4, I32))
    run, y = Run(SOURCE), np.zeros(4, I32)
    with pytest.raises(KernelFault, match="a block has 65 threads, and its launch bounds allow 64"):
        run("bounded", 1, 65, y)
    with pytest.raises(KernelFault, match=r"its grid is \(0, 1, 1\)"):
        run("bounded", 0, 4, y)
    with pytest.raises(KernelFault, match="300000 bytes of shared memory"):
        run("bounded", 1, 4, y, shared=300_000)
    with pytest.raises(ValueError, match="has 1 parameters, and was given 2"):
        run("bounded", 1, 4, y, 1)
    with pytest.raises(ValueError, match="parameter n of kernel beyond is an int32"):
        run("beyond", 1, 4, np.ones(4), np.ones(4), 1 << 40)


def test_host_memory_is_not_the_devices() -> None:
    run, y = Run(SOURCE), np.zeros(4, I32)
    run.launch("bounded", 1, 4, [y.ctypes.data])
    with pytest.raises(KernelFault, match="argument 0, which points to no memory of the device"):
        run.driver.synchronize()
    assert not y.any()
    address = run.put(y)
    run.driver.free(address)
    run.driver.synchronize()
    run.launch("bounded", 1, 4, [address])
    with pytest.raises(KernelFault, match="argument 0, which points to no memory of the device"):
        run.driver.synchronize()
    address = run.put(y)
    with pytest.raises(KernelFault, match="a copy goes beyond"):
        run.driver.copy_in(address, np.zeros(5, I32))


def test_a_fault_spoils_what_depends_on_it_and_nothing_else() -> None:
    run, good = Run(SOURCE), np.zeros(4, I32)
    first, second, other = (run.put(np.zeros(10)) for _ in range(3))
    mine = run.put(good)
    run.launch("beyond", 2, 8, [first, second, 10])
    run.launch("beyond", 1, 4, [second, other, 9])
    run.launch("bounded", 1, 4, [mine])
    run.driver.copy_out(good, mine)
    assert (good == 1).all(), "another's copy knows nothing of it"
    for spoilt in (second, other):
        with pytest.raises(KernelFault, match="kernel beyond reads outside"):
            run.driver.copy_out(np.zeros(10), spoilt)
    run.driver.synchronize()  # somebody has been told
    for address in (first, second, other, mine):
        run.driver.free(address)
    run.driver.synchronize()
    assert run.driver.arena.used == 0


def test_out_of_memory() -> None:
    driver = EmulatedDriver(limit=1000)
    first = driver.allocate(700)
    with pytest.raises(MemoryError) as caught:
        driver.allocate(400)
    assert "asked for:      400 bytes" in str(caught.value) and "700" in str(caught.value)
    driver.free(first)
    assert driver.allocate(400), "what is to be freed is freed first"


def test_a_source_that_the_compiler_refuses() -> None:
    bad = module('extern "C" __global__ void bad(int *y) { y[0] = nothing; }')
    with pytest.raises(CompilationError) as caught:
        EmulatedDriver().compile(bad)
    assert "nothing" in str(caught.value) and "1 extern" in str(caught.value)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_candidates", lambda: [("/nowhere/g++",)])
    toolchain.toolchain.cache_clear()
    try:
        with pytest.raises(NoCompilerError, match=r"install g\+\+ .*, or pip install ziglang"):
            EmulatedDriver().compile(module(SOURCE))
    finally:
        toolchain.toolchain.cache_clear()


def test_modules_are_kept_on_disk(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    with config.override(cache_dir=str(tmp_path / "cache")):
        loading.load(module(SOURCE))
        monkeypatch.setattr(toolchain.Toolchain, "module", None)
        kept = loading.load(module(SOURCE))
        assert kept.address("bounded")
        for entry in (tmp_path / "cache").rglob("*.fusec-object"):
            entry.write_bytes(entry.read_bytes()[:-1] + b"x")
        with pytest.raises(TypeError):
            loading.load(module(SOURCE))  # a spoilt entry is none


def test_every_word_is_declared_once() -> None:
    """The header alone compiles, with no kernels at all."""
    assert loading.load(module("")).shadow_bytes(0) > 0
