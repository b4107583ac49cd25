// What a kernel needs that goes through all iterations of a loop, behind prelude.cuh.

// Where a thread is in a block of a nest's own grid, which one of the launch's blocks plays.
struct Here {
  u32 x, y, block, size_x, size_y, blocks;
};

// The first block of a nest without barriers that this thread plays in, and how many are played at
// once: a block of the launch has the threads of several of them.
FUSEC_INLINE Here first_here(u32 size_x, u32 size_y, u32 blocks) {
  const u32 size = size_x * size_y, place = threadIdx.x % size;
  return {place % size_x, place / size_x,
          blockIdx.x * (blockDim.x / size) + threadIdx.x / size, size_x, size_y, blocks};
}
FUSEC_INLINE u32 played(u32 size_x, u32 size_y) {
  return gridDim.x * (blockDim.x / (size_x * size_y));
}

// The same for a nest with barriers: the first threads of a block play one of its blocks.
FUSEC_INLINE Here first_team(u32 size_x, u32 size_y, u32 blocks) {
  return {threadIdx.x % size_x, threadIdx.x / size_x, blockIdx.x, size_x, size_y, blocks};
}

// Shared memory, in which the arrays of all nests lie at the same places, one after the other.
extern __shared__ unsigned long long persistent_shared[];
template <class T> FUSEC_INLINE T *in_shared(int offset) {
  return reinterpret_cast<T *>(reinterpret_cast<char *>(persistent_shared) + offset);
}

// All blocks of the launch, which are on the device at once, wait for each other.  Each adds one,
// the first one what is left to the highest bit: that changes when all are here, so the word needs
// no reset.  What each has written before the others read after.
#ifndef fusec_grid_barrier
FUSEC_INLINE void fusec_grid_barrier(u32 *arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const u32 mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    __threadfence();
    const u32 before = atomicAdd(arrived, mine);
    while (((before ^ *static_cast<volatile u32 *>(arrived)) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}
#endif

// Sizes that the run decides: quotients are rounded down, as Python's.
FUSEC_INLINE i64 quotient_of(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
FUSEC_INLINE i64 rest_of(i64 a, i64 b) { return a - quotient_of(a, b) * b; }
FUSEC_INLINE i64 smaller_of(i64 a, i64 b) { return a < b ? a : b; }
FUSEC_INLINE i64 larger_of(i64 a, i64 b) { return a > b ? a : b; }

// A complex number of the program's.
template <class T> struct Complex {
  T real, imag;
};
template <class T> FUSEC_INLINE Complex<T> load_complex(const char *p) {
  return {load<T>(p), load<T>(p + sizeof(T))};
}
template <class T> FUSEC_INLINE void store_complex(char *p, Complex<T> z) {
  store<T>(p, z.real);
  store<T>(p + sizeof(T), z.imag);
}

FUSEC_INLINE bool is_leader() { return blockIdx.x == 0 && threadIdx.x == 0; }

// Whether the host wants the kernel to end: it writes to this word of its own memory at any time.
FUSEC_INLINE u32 asked_to_stop(const char *flag) {
  return *reinterpret_cast<const volatile u32 *>(flag);
}

FUSEC_INLINE void fill_with_zeros(char *p, i64 words) {
  const i64 all = i64(gridDim.x) * blockDim.x;
  for (i64 n = i64(blockIdx.x) * blockDim.x + threadIdx.x; n < words; n += all)
    store<u64>(p + 8 * n, 0);
}

// The indices of what is not 0, in order, by warps that have a part of the elements each: they count
// first, then, behind a barrier, each writes behind what the warps before it have counted.
constexpr u32 counting_warps = 8192;
struct Part {
  i64 first, last;
  u32 warp, warps;
};
FUSEC_INLINE Part part_of_warp(i64 n) {
  const u32 all = gridDim.x * (blockDim.x / 32);
  const u32 warps = all < counting_warps ? all : counting_warps;
  const u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const i64 size = (n + i64(warps) * 32 - 1) / (i64(warps) * 32) * 32;
  const i64 first = i64(warp) * size, last = first + size;
  return {first, warp < warps ? (last < n ? last : n) : 0, warp, warps};
}
template <class T> FUSEC_INLINE u32 found_at(const char *source, i64 step, i64 at, i64 last) {
  return __ballot_sync(0xffffffffu, at < last && load<T>(source + step * at) != 0);
}
template <class T> FUSEC_INLINE void count_found(const char *source, i64 step, i64 n, char *counts) {
  const Part part = part_of_warp(n);
  const u32 lane = threadIdx.x % 32;
  i64 count = 0;
  for (i64 at = part.first; at < part.last; at += 32)
    count += __popc(found_at<T>(source, step, at + lane, part.last));
  if (lane == 0 && part.warp < part.warps)
    store<i64>(counts + 8 * i64(part.warp), count);
}
FUSEC_INLINE i64 sum_of_warp(i64 x) {
  for (int by = 16; by > 0; by /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, by);
  return x;
}
template <class T>
FUSEC_INLINE i64 write_found(const char *source, i64 step, i64 n, const char *counts, char *indices) {
  const Part part = part_of_warp(n);
  const u32 lane = threadIdx.x % 32;
  i64 before = 0, all = 0;
  for (u32 warp = lane; warp < part.warps; warp += 32) {
    const i64 count = load<i64>(counts + 8 * i64(warp));
    all += count;
    before += warp < part.warp ? count : 0;
  }
  before = sum_of_warp(before);
  for (i64 at = part.first; at < part.last; at += 32) {
    const u32 found = found_at<T>(source, step, at + lane, part.last);
    if (found >> lane & 1)
      store<i64>(indices + 8 * (before + __popc(found & ((1u << lane) - 1))), at + lane);
    before += __popc(found);
  }
  return sum_of_warp(all);
}

// Of a loop over lanes: of several threads that leave, the largest word stays (of u64).
FUSEC_INLINE void leave_with(char *exit, i64 taken) {
  atomicMax(reinterpret_cast<unsigned long long *>(exit), static_cast<unsigned long long>(taken));
}
template <int bytes> FUSEC_INLINE void fill_with_zero_bytes(char *p) {
  for (int n = 0; n < bytes; ++n)
    store<u8>(p + n, 0);
}
