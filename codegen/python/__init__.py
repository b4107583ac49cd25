"""Kernels as Python text: to be read, and as an oracle."""
