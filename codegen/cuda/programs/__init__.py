"""Branches and loops on a CUDA device: text of the host's that launches their kernels."""
