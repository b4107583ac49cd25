// What kernels of the CUDA back end are written in: types, memory, and the scalar operations whose
// C++ operators would leave something undefined.  See codegen/cuda/module.py for what it relies on.

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef __int128 i128;
typedef unsigned __int128 u128;
typedef float f32;
typedef double f64;

// A half is its bits: arithmetic on it runs in single precision and is rounded after each step.
struct f16 {
  u16 bits;
};

#define FUSEC_INLINE __device__ __forceinline__

// ---- memory

template <class T, int N> struct alignas(N * sizeof(T)) Pack {
  T v[N];
};
template <class T> FUSEC_INLINE T load(const char *p) { return *reinterpret_cast<const T *>(p); }
template <class T> FUSEC_INLINE void store(char *p, T x) { *reinterpret_cast<T *>(p) = x; }
template <class T, int N> FUSEC_INLINE Pack<T, N> load_pack(const char *p) {
  return *reinterpret_cast<const Pack<T, N> *>(p);
}
template <class T, int N> FUSEC_INLINE void store_pack(char *p, Pack<T, N> x) {
  *reinterpret_cast<Pack<T, N> *>(p) = x;
}
template <class T> FUSEC_INLINE T shared_load(const T *p) { return *p; }
template <class T> FUSEC_INLINE void shared_store(T *p, T x) { *p = x; }

// ---- bits

FUSEC_INLINE u64 to_bits(f64 x) { return u64(__double_as_longlong(x)); }
FUSEC_INLINE u32 to_bits(f32 x) { return u32(__float_as_int(x)); }
FUSEC_INLINE u16 to_bits(f16 x) { return x.bits; }
FUSEC_INLINE f64 from_bits(u64 x) { return __longlong_as_double(i64(x)); }
FUSEC_INLINE f32 from_bits(u32 x) { return __int_as_float(i32(x)); }
FUSEC_INLINE f16 half_of_bits(u16 x) {
  f16 half;
  half.bits = x;
  return half;
}
FUSEC_INLINE u128 leading_zeros(u128 x) {
  const u64 high = u64(x >> 64);
  return high != 0 ? __clzll(i64(high)) : 64 + __clzll(i64(u64(x)));
}
FUSEC_INLINE u64 leading_zeros(u64 x) { return u64(__clzll(i64(x))); }
FUSEC_INLINE u32 funnel(u32 high, u32 low, u32 count) {
  return u32(((u64(high) << 32 | low) << (count & 31)) >> 32);
}
FUSEC_INLINE u64 funnel(u64 high, u64 low, u64 count) {
  const u64 n = count & 63;
  return n == 0 ? high : (high << n) | (low >> (64 - n));
}

// ---- halves (to nearest even; float64 goes through float32 rounded to odd)

FUSEC_INLINE f32 widened(f16 x) {
  const u32 magnitude = u32(x.bits) & 0x7FFFu, sign = (u32(x.bits) & 0x8000u) << 16;
  const u32 shifted = magnitude << 13;
  // 2**112 moves the exponent from half's bias to single's, for subnormals too.
  const u32 finite = to_bits(from_bits(shifted) * 0x1p112f);
  return from_bits((magnitude >= 0x7C00u ? (shifted | 0x7F800000u) : finite) | sign);
}
FUSEC_INLINE f16 narrowed(f32 x) {
  const u32 bits = to_bits(x), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  // Subnormal halves: adding 0.5 rounds at half's last place.
  const u32 subnormal = to_bits(from_bits(magnitude) + 0.5f) - 0x3F000000u;
  const u32 normal = (magnitude + 0xC8000FFFu + ((magnitude >> 13) & 1u)) >> 13;
  const u32 large = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  const u32 half = magnitude >= 0x47800000u ? large : magnitude < 0x38800000u ? subnormal : normal;
  return half_of_bits(u16(half | (sign >> 16)));
}
FUSEC_INLINE f16 narrowed(f64 x) {
  const f32 single = f32(x);
  const f64 back = f64(single);
  const u32 bits = to_bits(single);
  const bool inexact = back < x || back > x;
  const u32 odd = (fabs(back) > fabs(x) ? bits - 1u : bits) | 1u;
  return narrowed(inexact ? from_bits(odd) : single);
}

// ---- conversions of floats to integers: the lowest value of the width where out of range

FUSEC_INLINE i32 to_i32(f64 x) {
  return x > -2147483649.0 && x < 2147483648.0 ? i32(x) : i32(-2147483647 - 1);
}
FUSEC_INLINE i32 to_i32(f32 x) {
  return x >= -2147483648.0f && x < 2147483648.0f ? i32(x) : i32(-2147483647 - 1);
}
template <class T> FUSEC_INLINE i64 to_i64(T x) {
  const bool inside = x >= T(-9223372036854775808.0) && x < T(9223372036854775808.0);
  return inside ? i64(x) : i64(-9223372036854775807ll - 1);
}
template <class T> FUSEC_INLINE u64 to_u64(T x) {
  const T half = T(9223372036854775808.0);
  return x >= half ? u64(to_i64(T(x - half))) ^ 0x8000000000000000ull : u64(to_i64(x));
}

// ---- integers

template <class T> FUSEC_INLINE T lowest();
template <> FUSEC_INLINE i8 lowest<i8>() { return -128; }
template <> FUSEC_INLINE i16 lowest<i16>() { return -32768; }
template <> FUSEC_INLINE i32 lowest<i32>() { return -2147483647 - 1; }
template <> FUSEC_INLINE i64 lowest<i64>() { return -9223372036854775807ll - 1; }
template <> FUSEC_INLINE i128 lowest<i128>() { return i128(u128(1) << 127); }

// The floor of a/b; 0 where b is 0, the lowest value for the lowest value by -1.
template <class T> FUSEC_INLINE T int_floor_div(T a, T b) {
  const bool unsafe = b == 0 || (a == lowest<T>() && b == T(-1));
  const T safe = unsafe ? T(1) : b;
  const T quotient = T(a / safe), rest = T(a % safe);
  const T floored = rest != 0 && ((rest < 0) != (b < 0)) ? T(quotient - 1) : quotient;
  return b == 0 ? T(0) : floored;
}
template <class T> FUSEC_INLINE T int_mod(T a, T b) {
  const bool unsafe = b == 0 || b == T(-1);
  const T rest = T(a % (unsafe ? T(1) : b));
  const T fixed = rest != 0 && ((rest < 0) != (b < 0)) ? T(rest + b) : rest;
  return unsafe ? T(0) : fixed;
}
template <class T> FUSEC_INLINE T int_fmod(T a, T b) {
  const bool unsafe = b == 0 || b == T(-1);
  return unsafe ? T(0) : T(a % (unsafe ? T(1) : b));
}
template <class T> FUSEC_INLINE T unsigned_div(T a, T b) { return b == 0 ? T(0) : T(a / b); }
template <class T> FUSEC_INLINE T unsigned_mod(T a, T b) { return b == 0 ? T(0) : T(a % b); }

// a/b truncated; 0 where b is 0, the lowest value for the lowest value by -1.
template <class T> FUSEC_INLINE T int_quotient(T a, T b) {
  if (b == T(-1)) return a == lowest<T>() ? a : T(-a);
  return b == 0 ? T(0) : T(a / b);
}

// Counts outside of 0 to the width - 1 leave 0, or the sign for signed right shifts.
template <class T, class U> FUSEC_INLINE T shift_left(T a, T b) {
  const int bits = 8 * sizeof(T);
  const bool inside = U(b) < U(bits);
  return inside ? T(u64(U(a)) << (inside ? int(b) : 0)) : T(0);
}
template <class T, class U> FUSEC_INLINE T shift_right(T a, T b) {
  const int bits = 8 * sizeof(T);
  const bool inside = U(b) < U(bits), is_signed = T(-1) < T(1);
  if (is_signed) return T(a >> (inside ? int(b) : bits - 1));
  return inside ? T(a >> int(b)) : T(0);
}

// 1/x truncated; what converting infinity gives for 0.
template <class T> FUSEC_INLINE T int_reciprocal(T x, T of_zero) {
  const bool unit = x == T(1) || (T(-1) < T(1) && x == T(-1));
  return x == 0 ? of_zero : unit ? x : T(0);
}

FUSEC_INLINE int count_bits(u64 x) { return __popcll(x); }

// ---- floats

FUSEC_INLINE f64 fma_of(f64 a, f64 b, f64 c) { return fma(a, b, c); }
FUSEC_INLINE f32 fma_of(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
FUSEC_INLINE f64 root(f64 x) { return sqrt(x); }
FUSEC_INLINE f32 root(f32 x) { return sqrtf(x); }
FUSEC_INLINE f64 size_of(f64 x) { return fabs(x); }
FUSEC_INLINE f32 size_of(f32 x) { return fabsf(x); }
FUSEC_INLINE f64 floored(f64 x) { return floor(x); }
FUSEC_INLINE f32 floored(f32 x) { return floorf(x); }
FUSEC_INLINE f64 ceiled(f64 x) { return ceil(x); }
FUSEC_INLINE f32 ceiled(f32 x) { return ceilf(x); }
FUSEC_INLINE f64 truncated(f64 x) { return trunc(x); }
FUSEC_INLINE f32 truncated(f32 x) { return truncf(x); }
FUSEC_INLINE f64 rounded(f64 x) { return rint(x); }
FUSEC_INLINE f32 rounded(f32 x) { return rintf(x); }
// Signs are bits: NVRTC takes copysignf(x, x) of what was a half for fabsf(x).
FUSEC_INLINE f64 with_sign(f64 x, f64 sign) {
  return from_bits((to_bits(x) & ~(u64(1) << 63)) | (to_bits(sign) & (u64(1) << 63)));
}
FUSEC_INLINE f32 with_sign(f32 x, f32 sign) {
  return from_bits((to_bits(x) & 0x7FFFFFFFu) | (to_bits(sign) & 0x80000000u));
}
FUSEC_INLINE f64 rest_of(f64 a, f64 b) { return fmod(a, b); }
FUSEC_INLINE f32 rest_of(f32 a, f32 b) { return fmodf(a, b); }

// The smaller, the larger of two of which one is a constant, not 0; NaN if x is.
FUSEC_INLINE f32 lesser(f32 x, f32 bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  f32 y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(bound));
  return y;
#else
  return x > bound ? bound : x;
#endif
}
FUSEC_INLINE f32 greater(f32 x, f32 bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  f32 y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(bound));
  return y;
#else
  return x < bound ? bound : x;
#endif
}

// 1/b and a/b as NVRTC computes them, without the test whether exponents are near the limits of the
// format and the way of those that are.  Of a zero a the result is 0, whatever its sign.
FUSEC_INLINE f32 about_reciprocal(f32 b) {
#ifdef __CUDA_ARCH__
  f32 r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  return r;
#else
  return fabsf(b) < 0x1p-126f ? with_sign(from_bits(0x7F800000u), b)
         : fabsf(b) > 0x1p126f ? with_sign(0.0f, b) : 1.0f / b;
#endif
}
FUSEC_INLINE f32 reciprocal_within(f32 b) {
  const f32 r = about_reciprocal(b);
  return fmaf(fmaf(-b, r, 1.0f), r, r);
}
FUSEC_INLINE f32 quotient_within(f32 a, f32 b) {
  const f32 r = reciprocal_within(b);
  const f32 q = a * r;
  return fmaf(fmaf(-b, q, a), r, q);
}

// Estimates, where a program permits them: a GPU has instructions for these, a host computes.
#ifdef __CUDA_ARCH__
#define FUSEC_ESTIMATE(rough, exact) (rough)
#define FUSEC_INSTRUCTION(name, instruction)                                                       \
  FUSEC_INLINE f32 name(f32 x) {                                                                   \
    f32 y;                                                                                         \
    asm(instruction ".approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));                                 \
    return y;                                                                                      \
  }
FUSEC_INSTRUCTION(about_exp2, "ex2")
FUSEC_INSTRUCTION(about_log2, "lg2")
FUSEC_INSTRUCTION(about_sine, "sin")
FUSEC_INSTRUCTION(about_cosine, "cos")
FUSEC_INSTRUCTION(about_root, "sqrt")
FUSEC_INSTRUCTION(about_inverse_root, "rsqrt")
FUSEC_INLINE f32 about_quotient(f32 a, f32 b) {
  f32 y;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
FUSEC_INLINE f32 about_exp(f32 x) { return about_exp2(x * 0x1.715476p+0f); }
FUSEC_INLINE f32 about_log(f32 x) { return about_log2(x) * 0x1.62e430p-1f; }
FUSEC_INLINE f32 about_log10(f32 x) { return about_log2(x) * 0x1.344136p-2f; }
// Less a multiple of 2*pi in two parts.
FUSEC_INLINE f32 about_angle(f32 x) {
  const f32 turns = fmaf(x, 0x1.45f306p-3f, 0x1.8p23f) - 0x1.8p23f;
  return fmaf(-turns, -0x1.777a5cp-23f, fmaf(-turns, 0x1.921fb6p+2f, x));
}
FUSEC_INLINE f32 about_sin(f32 x) { return about_sine(about_angle(x)); }
FUSEC_INLINE f32 about_cos(f32 x) { return about_cosine(about_angle(x)); }
FUSEC_INLINE f32 about_tan(f32 x) {
  const f32 r = about_angle(x);
  return about_quotient(about_sine(r), about_cosine(r));
}
// x + x**3*q(x*x) where 1 - 2/(exp(2*|x|) + 1) would lose digits.
FUSEC_INLINE f32 about_tanh(f32 x) {
  const f32 e = about_exp2(fabsf(x) * 0x1.715476p+1f);
  const f32 large = fmaf(-2.0f, about_reciprocal(e + 1.0f), 1.0f), z = x * x;
  const f32 low = fmaf(z, fmaf(z, -0x1.75da40p-8f, 0x1.5224fcp-6f), -0x1.b83c1ep-5f);
  const f32 slope = fmaf(z, fmaf(z, low, 0x1.110726p-3f), -0x1.555532p-2f);
  return with_sign(fabsf(x) < 0.5f ? fmaf(x * z, slope, x) : large, x);
}
FUSEC_INLINE bool is_ordinary_power(f32 x, f32 y) {
  const f32 infinity = from_bits(0x7F800000u);
  return x >= 0x1p-126f && x < infinity && fabsf(y) < infinity;
}
FUSEC_INLINE f32 about_power(f32 x, f32 y) { return about_exp2(y * about_log2(x)); }
#else
#define FUSEC_ESTIMATE(rough, exact) (exact)
#endif

template <class T> FUSEC_INLINE bool is_nan(T x) { return x != x; }

// The class of a float as the one bit that LLVM's is.fpclass has for it.
template <class U> FUSEC_INLINE u32 class_of_bits(U bits, U infinity, U quiet, U normal) {
  const U sign = U(1) << (8 * sizeof(U) - 1), size = bits & ~sign;
  if (size > infinity) return size < quiet ? 1 : 2;
  const int kind = size == infinity ? 0 : size >= normal ? 1 : size != 0 ? 2 : 3;
  return bits & sign ? 4u << kind : 512u >> kind;
}
FUSEC_INLINE u32 class_of(f64 x) {
  return class_of_bits<u64>(to_bits(x), 0x7FF0000000000000ull, 0x7FF8000000000000ull,
                            0x0010000000000000ull);
}
FUSEC_INLINE u32 class_of(f32 x) {
  return class_of_bits<u32>(to_bits(x), 0x7F800000u, 0x7FC00000u, 0x00800000u);
}

// maximum and minimum give NaN if either operand is; fmax and fmin the one that is not.
template <class T> FUSEC_INLINE T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> FUSEC_INLINE T smaller(T a, T b) { return a < b || a != a ? a : b; }
template <class T> FUSEC_INLINE T larger_number(T a, T b) { return a > b || b != b ? a : b; }
template <class T> FUSEC_INLINE T smaller_number(T a, T b) { return a < b || b != b ? a : b; }

// The extremum of a reduction, in which any of two zeros may be last: NaN if either is one, and of
// two zeros the one whose sign says so.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FUSEC_INLINE f32 largest(f32 a, f32 b) {
  f32 x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
FUSEC_INLINE f32 smallest(f32 a, f32 b) {
  f32 x;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
#else
FUSEC_INLINE f32 largest(f32 a, f32 b) {
  return a == b ? from_bits(to_bits(a) & to_bits(b)) : larger(a, b);
}
FUSEC_INLINE f32 smallest(f32 a, f32 b) {
  return a == b ? from_bits(to_bits(a) | to_bits(b)) : smaller(a, b);
}
#endif

template <class T> FUSEC_INLINE T sign_of(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
}
template <class T> FUSEC_INLINE T step_at(T x, T at_zero) {
  return x != x ? x : x == T(0) ? at_zero : x < T(0) ? T(0) : T(1);
}

// Python's modulo, with the sign of b; where b is 0, C's remainder (NumPy's npy_divmod).
template <class T> FUSEC_INLINE T floor_mod(T a, T b) {
  const T rest = rest_of(a, b);
  if (b == T(0)) return rest;
  if (rest == T(0)) return with_sign(T(0), b);  // NaN is not 0
  return (b < T(0)) != (rest < T(0)) ? rest + b : rest;
}
// The floor of a/b, from the exact remainder as NumPy computes it.
template <class T> FUSEC_INLINE T floor_div(T a, T b) {
  const T quotient = a / b;
  const T rest = rest_of(a, b);
  const bool mixed = rest != T(0) && (b < T(0)) != (rest < T(0));
  const T exact = (a - rest) / b - (mixed ? T(1) : T(0));
  const T whole = floored(exact);
  const T value = exact - whole > T(0.5) ? whole + T(1) : whole;
  const T result = exact != T(0) ? value : with_sign(T(0), quotient);
  return b == T(0) ? quotient : result;
}

// n / d for 0 <= n < 2**31, by d's reciprocal: see launch_plan.reciprocal.
FUSEC_INLINE i32 quotient(i32 n, i32 magic, i32 shift) {
  return i32((__umulhi(u32(n), u32(magic)) + u32(n)) >> shift);
}

// The sums of N words of shared memory up to each, by a block of T threads, which all ask at once.
template <int N, int T> FUSEC_INLINE void scan_words(i32 *words) {
  i32 before[N / T];
  for (int d = 1; d < N; d <<= 1) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N / T; ++k) {
      const int i = int(threadIdx.x) + k * T;
      before[k] = i >= d ? shared_load(&words[i - d]) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N / T; ++k) {
      const int i = int(threadIdx.x) + k * T;
      shared_store(&words[i], shared_load(&words[i]) + before[k]);
    }
  }
  __syncthreads();
}

// What a thread has stored is there for all who have waited for the flag.
FUSEC_INLINE void publish(char *flag) {
  __threadfence();
  atomicExch(reinterpret_cast<unsigned *>(flag), 1u);
}
FUSEC_INLINE void wait_for(const char *flag) {
  while (*reinterpret_cast<const volatile u32 *>(flag) == 0) {
  }
  __threadfence();
}

// ---- several elements of a row at once

// Elements `first` to `first + count - 1` of neighbours at p; lanes from count on repeat the last
// element, so that all lanes compute with values of the program.
template <class T, int N> FUSEC_INLINE Pack<T, N> load_some(const char *p, int count) {
  if (count == N && (u64(p) & (N * sizeof(T) - 1)) == 0) return load_pack<T, N>(p);
  Pack<T, N> x;
#pragma unroll
  for (int k = 0; k < N; ++k) x.v[k] = load<T>(p + (k < count ? k : count - 1) * sizeof(T));
  return x;
}
template <class T, int N> FUSEC_INLINE void store_some(char *p, Pack<T, N> x, int count) {
  if (count == N && (u64(p) & (N * sizeof(T) - 1)) == 0) {
    store_pack<T, N>(p, x);
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k)
    if (k < count) store<T>(p + k * sizeof(T), x.v[k]);
}

// N neighbours at any address.
template <class T, int N> FUSEC_INLINE Pack<T, N> load_whole(const char *p) {
  if ((u64(p) & (N * sizeof(T) - 1)) == 0) return load_pack<T, N>(p);
  Pack<T, N> x;
#pragma unroll
  for (int k = 0; k < N; ++k) x.v[k] = load<T>(p + k * sizeof(T));
  return x;
}
template <class T, int N> FUSEC_INLINE void store_whole(char *p, Pack<T, N> x) {
  if ((u64(p) & (N * sizeof(T) - 1)) == 0) {
    store_pack<T, N>(p, x);
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) store<T>(p + k * sizeof(T), x.v[k]);
}

// N neighbours at an address that the widest access may have.
template <class T, int N> FUSEC_INLINE Pack<T, N> load_wide(const char *p) {
  constexpr int part = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
  Pack<T, N> x;
#pragma unroll
  for (int k = 0; k < N; k += part) {
    const Pack<T, part> few = load_pack<T, part>(p + k * sizeof(T));
#pragma unroll
    for (int i = 0; i < part; ++i) x.v[k + i] = few.v[i];
  }
  return x;
}
template <class T, int N> FUSEC_INLINE void store_wide(char *p, Pack<T, N> x) {
  constexpr int part = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
#pragma unroll
  for (int k = 0; k < N; k += part) {
    Pack<T, part> few;
#pragma unroll
    for (int i = 0; i < part; ++i) few.v[i] = x.v[k + i];
    store_pack<T, part>(p + k * sizeof(T), few);
  }
}

// ---- values of other threads of a warp: all of its threads ask at once

#define FUSEC_SHUFFLES(T, W, to, from)                                                             \
  FUSEC_INLINE T shuffle_xor(T x, int mask) {                                                      \
    const W word = __shfl_xor_sync(0xffffffffu, W(to), mask);                                      \
    return from;                                                                                   \
  }                                                                                                \
  FUSEC_INLINE T shuffle_up(T x, int by) {                                                         \
    const W word = __shfl_up_sync(0xffffffffu, W(to), unsigned(by));                               \
    return from;                                                                                   \
  }                                                                                                \
  FUSEC_INLINE T shuffle_from(T x, int lane) {                                                     \
    const W word = __shfl_sync(0xffffffffu, W(to), lane);                                          \
    return from;                                                                                   \
  }
FUSEC_SHUFFLES(bool, i32, x, word != 0)
FUSEC_SHUFFLES(i8, i32, x, i8(word))
FUSEC_SHUFFLES(u8, i32, x, u8(word))
FUSEC_SHUFFLES(i16, i32, x, i16(word))
FUSEC_SHUFFLES(u16, i32, x, u16(word))
FUSEC_SHUFFLES(i32, i32, x, word)
FUSEC_SHUFFLES(u32, i32, x, u32(word))
FUSEC_SHUFFLES(i64, u64, x, i64(word))
FUSEC_SHUFFLES(u64, u64, x, word)
FUSEC_SHUFFLES(f16, i32, x.bits, half_of_bits(u16(word)))
FUSEC_SHUFFLES(f32, i32, to_bits(x), from_bits(u32(word)))
FUSEC_SHUFFLES(f64, u64, to_bits(x), from_bits(word))
