"""Machine code: LLVM, Numba's scalar functions, and caches."""
