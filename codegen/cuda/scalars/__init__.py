"""Scalar operations as CUDA C++."""
