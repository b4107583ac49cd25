"""Loop fusion: which nodes share a kernel, and what is stored between kernels."""
