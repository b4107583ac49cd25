// The words of CUDA C++ for a host compiler: what a kernel's source may say, compiled for the CPU.
//
// It includes nothing, so that a source meets no names here that it does not meet under NVRTC.
// What blocks and threads do is in cuda_host.cpp; the compiler itself reports each access to memory
// (-fsanitize=thread, whose functions are defined there), so that sources need not say anything.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define FUSEC_HOST extern "C" __attribute__((visibility("hidden")))
// Bodies of these words are no accesses of the kernel's: they say themselves what they access.
#define FUSEC_WORD static __attribute__((noinline, unused, no_sanitize("thread", "undefined")))

// ---- shared memory: one copy, because blocks run one after another, or take turns with it ----------
// Each array has a gap before it, whose address is noted: what runs over the end of one is found.

#define FUSEC_SHARED __attribute__((section("fusec_shared"), used, no_reorder))
#define FUSEC_SHARED_ARRAY(n) \
  static FUSEC_SHARED __attribute__((aligned(16))) char fusec_gap_##n[64] = {}; \
  static __attribute__((section("fusec_gaps"), used)) char *const fusec_gap_at_##n = fusec_gap_##n; \
  static FUSEC_SHARED
#define FUSEC_SHARED_NUMBERED(n) FUSEC_SHARED_ARRAY(n)
#define __shared__ FUSEC_SHARED_NUMBERED(__COUNTER__)

// `extern __shared__ T name[];` is rewritten to a pointer to this before the text is compiled.
FUSEC_HOST char fusec_host_dynamic_shared[];

// ---- types -----------------------------------------------------------------------------------------

typedef __SIZE_TYPE__ size_t;
struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

#define FUSEC_VECTORS(T, name, two, four) \
  struct __align__(two) name##2 { T x, y; }; \
  struct __align__(four) name##4 { T x, y, z, w; }; \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
FUSEC_VECTORS(signed char, char, 2, 4)
FUSEC_VECTORS(unsigned char, uchar, 2, 4)
FUSEC_VECTORS(short, short, 4, 8)
FUSEC_VECTORS(unsigned short, ushort, 4, 8)
FUSEC_VECTORS(int, int, 8, 16)
FUSEC_VECTORS(unsigned, uint, 8, 16)
FUSEC_VECTORS(float, float, 8, 16)
FUSEC_VECTORS(long long, longlong, 16, 16)
FUSEC_VECTORS(unsigned long long, ulonglong, 16, 16)
FUSEC_VECTORS(double, double, 16, 16)

// ---- where a thread is -----------------------------------------------------------------------------
// Constant for the thread, so the compiler may ask once.

FUSEC_HOST __attribute__((const)) uint3 fusec_host_thread();
FUSEC_HOST __attribute__((const)) uint3 fusec_host_block();
FUSEC_HOST __attribute__((const)) uint3 fusec_host_block_size();
FUSEC_HOST __attribute__((const)) uint3 fusec_host_grid_size();
#define threadIdx (fusec_host_thread())
#define blockIdx (fusec_host_block())
#define blockDim (fusec_host_block_size())
#define gridDim (fusec_host_grid_size())
#define warpSize 32

// ---- waiting for other threads -----------------------------------------------------------------------
// A barrier is known by its line: threads that wait at different lines wait at different barriers.

enum { FUSEC_SYNC, FUSEC_BALLOT, FUSEC_MATCH, FUSEC_IDX, FUSEC_UP, FUSEC_DOWN, FUSEC_XOR };
FUSEC_HOST void fusec_host_block_barrier(int line);
FUSEC_HOST void fusec_host_team_barrier(int line, unsigned count);  // of the first threads
FUSEC_HOST void fusec_host_grid_barrier(int line);
FUSEC_HOST int fusec_host_block_count(int line, int predicate);  // of threads with a true predicate
FUSEC_HOST unsigned fusec_host_warp(
    int line, int what, unsigned mask, int number, int width, const void *in, void *out, int size);
FUSEC_HOST void fusec_host_trap(int line);

#define __syncthreads() fusec_host_block_barrier(__LINE__)
#define __barrier_sync_count(number, count) fusec_host_team_barrier(__LINE__, count)
#define fusec_grid_barrier(arrived) fusec_host_grid_barrier(((void)(arrived), __LINE__))
#define __syncthreads_count(p) fusec_host_block_count(__LINE__, (p))
#define __syncthreads_or(p) (fusec_host_block_count(__LINE__, (p)) > 0)
#define __syncthreads_and(p) (fusec_host_block_count(__LINE__, !(p)) == 0)
#define __syncwarp(...) fusec_host_sync_warp(__LINE__ __VA_OPT__(,) __VA_ARGS__)
#define __ballot_sync(mask, p) fusec_host_warp(__LINE__, FUSEC_BALLOT, mask, (p) ? 1 : 0, 32, 0, 0, 0)
#define __any_sync(mask, p) (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p) (__ballot_sync(mask, !(p)) == 0)
#define __match_any_sync(mask, x) fusec_host_match(__LINE__, mask, x)
#define __shfl_sync(...) fusec_host_shuffle(__LINE__, FUSEC_IDX, __VA_ARGS__)
#define __shfl_up_sync(...) fusec_host_shuffle(__LINE__, FUSEC_UP, __VA_ARGS__)
#define __shfl_down_sync(...) fusec_host_shuffle(__LINE__, FUSEC_DOWN, __VA_ARGS__)
#define __shfl_xor_sync(...) fusec_host_shuffle(__LINE__, FUSEC_XOR, __VA_ARGS__)
#define __trap() fusec_host_trap(__LINE__)
#define __threadfence() ((void)0)  // threads run one at a time
#define __threadfence_block() ((void)0)

FUSEC_WORD void fusec_host_sync_warp(int line, unsigned mask = 0xffffffffu) {
  fusec_host_warp(line, FUSEC_SYNC, mask, 0, 32, 0, 0, 0);
}
template <class T> FUSEC_WORD unsigned fusec_host_match(int line, unsigned mask, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA matches values of 4 or 8 bytes");
  return fusec_host_warp(line, FUSEC_MATCH, mask, 0, 32, &value, 0, sizeof(T));
}
template <class T>
FUSEC_WORD T fusec_host_shuffle(int line, int what, unsigned mask, T value, int lane, int width = 32) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles values of 4 or 8 bytes");
  T result = value;
  fusec_host_warp(line, what, mask, lane, width, &value, &result, sizeof(T));
  return result;
}

// ---- atomics: threads run one at a time, so a read and a write are one -------------------------------

FUSEC_HOST void fusec_host_atomic(const void *at, int size);
#define FUSEC_ATOMIC(name, T, changed) \
  FUSEC_WORD T name(T *at, T value) { \
    fusec_host_atomic(at, sizeof(T)); \
    T old = *at; \
    *at = changed; \
    return old; \
  }
#define FUSEC_ATOMIC_CAS(T) \
  FUSEC_WORD T atomicCAS(T *at, T expected, T value) { \
    fusec_host_atomic(at, sizeof(T)); \
    T old = *at; \
    if (old == expected) *at = value; \
    return old; \
  }
#define FUSEC_ATOMICS(T) \
  FUSEC_ATOMIC(atomicMin, T, value < old ? value : old) \
  FUSEC_ATOMIC(atomicMax, T, value > old ? value : old) \
  FUSEC_ATOMIC(atomicAnd, T, old & value) \
  FUSEC_ATOMIC(atomicOr, T, old | value) \
  FUSEC_ATOMIC(atomicXor, T, old ^ value) \
  FUSEC_ATOMIC(atomicExch, T, value) \
  FUSEC_ATOMIC_CAS(T)
FUSEC_ATOMICS(int)
FUSEC_ATOMICS(unsigned)
FUSEC_ATOMICS(unsigned long long)
FUSEC_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
FUSEC_ATOMIC(atomicAdd, unsigned, old + value)
FUSEC_ATOMIC(atomicAdd, unsigned long long, old + value)
FUSEC_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
FUSEC_ATOMIC(atomicSub, unsigned, old - value)
FUSEC_ATOMIC(atomicMin, long long, value < old ? value : old)
FUSEC_ATOMIC(atomicMax, long long, value > old ? value : old)
FUSEC_ATOMIC(atomicAdd, float, old + value)
FUSEC_ATOMIC(atomicAdd, double, old + value)
FUSEC_ATOMIC(atomicExch, float, value)

// ---- arithmetic: each is exact or correctly rounded, so that the bits are the GPU's -------------------

#define FUSEC_MATH1(name) \
  static inline double name(double x) { return __builtin_##name(x); } \
  static inline float name(float x) { return __builtin_##name##f(x); } \
  static inline float name##f(float x) { return __builtin_##name##f(x); }
#define FUSEC_MATH2(name) \
  static inline double name(double x, double y) { return __builtin_##name(x, y); } \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
  static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }
FUSEC_MATH1(sqrt)
FUSEC_MATH1(fabs)
FUSEC_MATH1(floor)
FUSEC_MATH1(ceil)
FUSEC_MATH1(trunc)
FUSEC_MATH1(rint)
FUSEC_MATH2(copysign)
FUSEC_MATH2(fmod)
FUSEC_MATH2(fmin)
FUSEC_MATH2(fmax)
static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

#define FUSEC_PREDICATE(name, builtin) \
  static inline bool name(double x) { return builtin(x); } \
  static inline bool name(float x) { return builtin(x); }
FUSEC_PREDICATE(isnan, __builtin_isnan)
FUSEC_PREDICATE(isinf, __builtin_isinf)
FUSEC_PREDICATE(isfinite, __builtin_isfinite)
FUSEC_PREDICATE(signbit, __builtin_signbit)

#define FUSEC_EXTREMA(T) \
  static inline T min(T x, T y) { return y < x ? y : x; } \
  static inline T max(T x, T y) { return x < y ? y : x; }
FUSEC_EXTREMA(int)
FUSEC_EXTREMA(unsigned)
FUSEC_EXTREMA(long)
FUSEC_EXTREMA(unsigned long)
FUSEC_EXTREMA(long long)
FUSEC_EXTREMA(unsigned long long)

#define FUSEC_BITS(name, From, To) \
  static inline To name(From x) { \
    To result; \
    __builtin_memcpy(&result, &x, sizeof x); \
    return result; \
  }
FUSEC_BITS(__double_as_longlong, double, long long)
FUSEC_BITS(__longlong_as_double, long long, double)
FUSEC_BITS(__float_as_int, float, int)
FUSEC_BITS(__int_as_float, int, float)
FUSEC_BITS(__float_as_uint, float, unsigned)
FUSEC_BITS(__uint_as_float, unsigned, float)

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)(((unsigned long long)x * y) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
template <class T> static inline T __ldg(const T *at) { return *at; }

// ---- calling a kernel with the addresses of its arguments, as a launch has them ------------------------

template <int... I> struct fusec_host_numbers {};
template <int N, int... I> struct fusec_host_count : fusec_host_count<N - 1, N - 1, I...> {};
template <int... I> struct fusec_host_count<0, I...> { typedef fusec_host_numbers<I...> list; };
template <class... P, int... I>
__attribute__((no_sanitize("thread", "undefined"))) static void fusec_host_apply(
    void (*kernel)(P...), void **args, fusec_host_numbers<I...>) {
  kernel(*(P *)args[I]...);
}
#define FUSEC_KERNEL(kernel) \
  template <class... P> \
  static void fusec_host_call_##kernel(void (*k)(P...), void **args) { \
    fusec_host_apply(k, args, typename fusec_host_count<sizeof...(P)>::list()); \
  } \
  extern "C" __attribute__((visibility("default"))) void fusec_kernel_##kernel(void **args) { \
    fusec_host_call_##kernel(&kernel, args); \
  }
