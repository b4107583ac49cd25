"""Rules of SciPy's functions."""
