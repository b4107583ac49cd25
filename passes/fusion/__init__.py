"""Loop fusion: which nodes share a kernel, and which values are stored between kernels."""
