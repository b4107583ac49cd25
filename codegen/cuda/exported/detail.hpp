// What launch functions of an exported library are made with: of CUDA it needs the driver alone.
#define FUSEC_TRY(call) do { const int code_ = (call); if (code_) return code_; } while (0)

namespace detail {

static inline int driver(CUresult result) { return result ? DRIVER - int(result) : 0; }

template <size_t N>
static inline int launch(const Library &library, int kernel, int64_t blocks, int64_t x, int64_t y, int64_t shared,
           CUstream stream, const int64_t (&words)[N]) {
  if (blocks < 1 || blocks > 0x7fffffff) return SIZES;
  void *arguments[N];
  for (size_t k = 0; k < N; ++k) arguments[k] = const_cast<int64_t *>(words + k);
  return driver(cuLaunchKernel(library.kernels[kernel], unsigned(blocks), 1, 1, unsigned(x),
                               unsigned(y), 1, unsigned(shared), stream, arguments, nullptr));
}

// Of blocks that wait for each other: as many as the device has room for at once.
template <size_t N>
static inline int launch_together(const Library &library, int kernel, int64_t blocks, int64_t x, int64_t y,
                    int64_t shared, CUstream stream, const int64_t (&words)[N]) {
  int room = 0;
  FUSEC_TRY(driver(cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &room, library.kernels[kernel], int(x * y), size_t(shared))));
  const int64_t most = int64_t(room) * library.multiprocessors;
  void *arguments[N];
  for (size_t k = 0; k < N; ++k) arguments[k] = const_cast<int64_t *>(words + k);
  return driver(cuLaunchCooperativeKernel(library.kernels[kernel],
                                          unsigned(blocks < most ? blocks : most), 1, 1, unsigned(x),
                                          unsigned(y), 1, unsigned(shared), stream, arguments));
}

static inline int copy(void *target, int64_t source, int64_t bytes, CUstream stream) {
  return bytes ? driver(cuMemcpyDtoDAsync(CUdeviceptr(target), CUdeviceptr(source), size_t(bytes),
                                          stream)) : 0;
}

static inline bool overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  const uint64_t x = uint64_t(a), y = uint64_t(b);
  return x < y + uint64_t(b_bytes) && y < x + uint64_t(a_bytes);
}

// Integers as Python has them: quotients are rounded down, and rests have the divisor's sign.
static inline int64_t rest(int64_t a, int64_t b) { const int64_t r = a % b; return r < 0 ? r + b : r; }
static inline int64_t quotient(int64_t a, int64_t b) { return (a - rest(a, b)) / b; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
static inline int64_t bit_length(int64_t a) { int64_t n = 0; for (; a; a >>= 1) ++n; return n; }

// Arithmetic on numbers that follow from sizes, each operation rounded by itself.
template <typename T> static inline T plus(T a, T b) { volatile T r = a + b; return r; }
template <typename T> static inline T minus(T a, T b) { volatile T r = a - b; return r; }
template <typename T> static inline T times(T a, T b) { volatile T r = a * b; return r; }
template <typename T> static inline T over(T a, T b) { volatile T r = a / b; return r; }
static inline double number(uint64_t bits) { double x; std::memcpy(&x, &bits, 8); return x; }
static inline float single(uint32_t bits) { float x; std::memcpy(&x, &bits, 4); return x; }
static inline int64_t bits(double x) { int64_t r; std::memcpy(&r, &x, 8); return r; }
static inline int64_t bits(float x) { uint32_t r; std::memcpy(&r, &x, 4); return int64_t(r); }

// Numbers as the words that kernels read.
template <typename T> static inline int64_t word(T x) {
  int64_t r = 0;
  std::memcpy(&r, &x, sizeof(T));
  return r;
}
static inline int64_t pair(float real, float imag) {
  return int64_t(uint64_t(word(imag)) << 32 | uint64_t(word(real)));
}

}  // namespace detail
