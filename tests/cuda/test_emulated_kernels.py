"""The emulated device runs CUDA C++ as a GPU does: hand-written kernels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Run

SOURCE = r"""
extern "C" __global__ void saxpy(const float *__restrict__ a, const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = a[0] * x[i] + y[i];
}
extern "C" __global__ void __launch_bounds__(256) total(const double *x, double *out, long long n) {
  __shared__ double parts[8];
  double sum = 0;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += x[i];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
    for (int d = 4; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d, 8);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}
extern "C" __global__ void histogram(const unsigned char *x, int *counts, int n) {
  extern __shared__ int own[];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(own + x[i], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (own[i]) atomicAdd(counts + i, own[i]);
}
extern "C" __global__ void transpose(const float *x, float *y, int rows, int columns) {
  __shared__ float tile[16][17];
  int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
  if (r < rows && c < columns) tile[threadIdx.y][threadIdx.x] = x[r * columns + c];
  __syncthreads();
  r = blockIdx.y * 16 + threadIdx.x, c = blockIdx.x * 16 + threadIdx.y;
  if (r < rows && c < columns) y[c * rows + r] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void scan(const int *x, int *y) {
  int value = x[threadIdx.x], lane = threadIdx.x % 32;
  for (int d = 1; d < 32; d *= 2) {
    int left = __shfl_up_sync(0xffffffffu, value, d);
    if (lane >= d) value += left;
  }
  y[threadIdx.x] = value;
}
extern "C" __global__ void vote(const int *x, unsigned *y) {
  unsigned odd = __ballot_sync(0xffffffffu, x[threadIdx.x] & 1);
  bool any = __any_sync(0xffffffffu, x[threadIdx.x] > 5);
  bool all = __all_sync(0xffffffffu, x[threadIdx.x] >= 0);
  int first = __shfl_sync(0xffffffffu, x[threadIdx.x], 0);
  int odds = __syncthreads_count(x[threadIdx.x] & 1);
  y[threadIdx.x * 4] = odd;
  y[threadIdx.x * 4 + 1] = any * 2 + all;
  y[threadIdx.x * 4 + 2] = first;
  y[threadIdx.x * 4 + 3] = odds;
}
extern "C" __global__ void same(const int *x, unsigned *y) {
  y[threadIdx.x * 2] = __match_any_sync(0xffffffffu, x[threadIdx.x]);
  y[threadIdx.x * 2 + 1] = __match_any_sync(0xffffffffu, (unsigned long long)x[threadIdx.x] << 40);
}
extern "C" __global__ void neighbours(int *x) {  // a warp alone needs no barrier of the block
  __shared__ int line[64];
  line[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  x[threadIdx.x] = line[threadIdx.x ^ 1];
}
extern "C" __global__ void packs(const double2 *x, double2 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double2 v = x[i];
    y[i] = make_double2(v.y, v.x);
  }
}
extern "C" __global__ void fused(const double *x, double *y) {
  y[0] = fma(x[0], x[1], x[2]);
  y[1] = x[0] * x[1] + x[2];
  y[2] = sqrt(x[0]);
  y[3] = rint(x[3]);
}
extern "C" __global__ void order(int *last) { *last = blockIdx.x * blockDim.x + threadIdx.x; }
__constant__ const double table[3] = {1.5, 2.5, 3.5};
extern "C" __global__ void constants(double *y) { y[threadIdx.x] = table[threadIdx.x % 3]; }
"""
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])


@SEEDS
def test_elements(seed: int) -> None:
    x, y = np.arange(1001, dtype=np.float32), np.ones(1001, np.float32)
    out = Run(SOURCE, seed)("saxpy", 3, 64, np.float32([2.5]), x, y, 1001)[2]
    assert (out == np.float32(2.5) * x + 1).all()


@SEEDS
def test_sums_in_a_stated_order(seed: int) -> None:
    """The order is the kernel's, whatever order threads run in: the bits are always the same."""
    x = np.random.default_rng(0).normal(size=10_000)
    out = Run(SOURCE, seed)("total", 4, 256, x, np.zeros(4), 10_000)[1]
    lanes = np.zeros((10, 1024))
    lanes.reshape(-1)[:10_000] = x
    sums = np.zeros(1024)
    for row in lanes:
        sums += row
    parts = sums.reshape(4, 8, 32)
    for axis_half in (16, 8, 4, 2, 1):
        parts = parts[..., :axis_half] + parts[..., axis_half:]
    parts = parts[..., 0]
    assert (out == (((parts[:, :4] + parts[:, 4:])[:, :2] + (parts[:, :4] + parts[:, 4:])[:, 2:])
                    @ np.ones(2))).all()


@SEEDS
def test_atomics(seed: int) -> None:
    x = np.random.default_rng(1).integers(0, 256, 5000).astype(np.uint8)
    out = Run(SOURCE, seed)("histogram", 5, 96, x, np.zeros(256, np.int32), 5000, shared=1024)[1]
    assert (out == np.bincount(x, minlength=256)).all()


@SEEDS
def test_tiles(seed: int) -> None:
    x = np.random.default_rng(2).normal(size=(37, 50)).astype(np.float32)
    out = Run(SOURCE, seed)("transpose", (4, 3), (16, 16), x, np.zeros((50, 37), np.float32),
                            37, 50)[1]
    assert (out == x.T).all()


@SEEDS
def test_warps(seed: int) -> None:
    x = np.random.default_rng(3).integers(0, 9, 96).astype(np.int32)
    run = Run(SOURCE, seed)
    assert (run("scan", 1, 96, x, x)[1].reshape(3, 32) == np.cumsum(x.reshape(3, 32), 1)).all()
    y = run("vote", 1, 96, x, np.zeros((96, 4), np.uint32))[1].reshape(3, 32, 4)
    for warp, lanes in zip(y, x.reshape(3, 32), strict=True):
        assert (warp[:, 0] == sum(1 << i for i in range(32) if lanes[i] & 1)).all()
        assert (warp[:, 1] == 2 * (lanes > 5).any() + 1).all()
        assert (warp[:, 2] == lanes[0]).all() and (warp[:, 3] == (x & 1).sum()).all()
    same = run("same", 1, 96, x, np.zeros((96, 2), np.uint32))[1].reshape(3, 32, 2)
    for warp, lanes in zip(same, x.reshape(3, 32), strict=True):
        masks = (lanes[:, None] == lanes) @ (1 << np.arange(32))
        assert (warp == masks[:, None]).all()
    assert (run("neighbours", 1, 64, x[:64])[0] == x[:64].reshape(32, 2)[:, ::-1].ravel()).all()


def test_a_warp_that_is_not_whole_shuffles_among_its_threads() -> None:
    x = np.arange(1, 41, dtype=np.int32)
    out = Run(SOURCE, 1)("scan", 1, 40, x, x)[1]
    assert (out == np.concatenate([np.cumsum(x[:32]), np.cumsum(x[32:])])).all()


def test_packs_constants_and_arithmetic() -> None:
    run = Run(SOURCE)
    x = np.arange(20.0)
    assert (run("packs", 1, 32, x, np.zeros(20), 10)[1] == x.reshape(10, 2)[:, ::-1].ravel()).all()
    assert (run("constants", 1, 4, np.zeros(4))[0] == [1.5, 2.5, 3.5, 1.5]).all()
    a, b, c = 1 + 2.0 ** -52, 1 - 2.0 ** -53, -1.0
    fused, plain, root, even = run("fused", 1, 1, np.array([a, b, c, 2.5]), np.zeros(4))[1]
    assert plain == a * b + c and fused != plain, "rounded twice only where the source says so"
    assert root == np.sqrt(a) and even == 2.0


def test_an_order_that_matters_is_seen() -> None:
    """In order the last thread of the last block writes last; with seeds others do."""
    assert Run(SOURCE)("order", 8, 32, np.zeros(1, np.int32))[0][0] == 255
    last = {int(Run(SOURCE, seed)("order", 8, 32, np.zeros(1, np.int32))[0][0])
            for seed in range(1, 9)}
    assert len(last) > 4
    again = [int(Run(SOURCE, 7)("order", 8, 32, np.zeros(1, np.int32))[0][0]) for _ in range(2)]
    assert again[0] == again[1], "a seed's order is the same each time"


def test_streams_take_turns_in_an_order_of_the_seeds() -> None:
    """A stream that does not wait for another may find its work done or not."""
    def seen(seed: int, waits: bool) -> float:
        run = Run(SOURCE, seed)
        one, y = run.put(np.float32([1])), run.put(np.zeros(1, np.float32))
        run.driver.synchronize()
        run.launch("saxpy", 1, 1, [one, one, y, 1], stream=1)
        if waits:
            run.driver.streams.wait(run.driver.streams.record(1), 2)
        run.launch("saxpy", 1, 1, [y, one, y, 1], stream=2)
        out = np.zeros(1, np.float32)
        run.driver.synchronize()
        run.driver.copy_out(out, y)
        return float(out[0])

    assert {seen(seed, waits=False) for seed in range(1, 20)} == {1.0, 2.0}
    assert {seen(seed, waits=True) for seed in range(1, 20)} == {2.0}


def test_work_is_late() -> None:
    run = Run(SOURCE)
    y = run.put(np.zeros(1, np.float32))
    run.driver.synchronize()
    run.launch("saxpy", 1, 1, [y, y, y, 1])
    assert len(run.driver.streams) == 1
    run.driver.synchronize()
    assert len(run.driver.streams) == 0
