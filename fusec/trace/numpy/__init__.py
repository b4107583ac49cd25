"""NumPy's functions and methods, with NumPy's signatures."""
