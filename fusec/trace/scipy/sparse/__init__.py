"""Sparse arrays of SciPy's as arguments: what stands for them in a trace."""
