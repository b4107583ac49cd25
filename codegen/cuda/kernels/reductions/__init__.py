"""Kernels of reductions and scans: teams of threads join what each of them has."""
