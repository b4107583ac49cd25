"""fusec: a JIT compiler from traced NumPy graphs to fused kernels."""
