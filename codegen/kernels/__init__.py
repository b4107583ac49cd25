"""Kernels: the loop IR, and how the body of a fused node becomes one."""
