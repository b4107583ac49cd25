"""SciPy's functions."""
