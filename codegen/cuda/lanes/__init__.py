"""Loops over lanes as CUDA kernels: a thread a lane."""
