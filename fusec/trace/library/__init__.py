"""Library calls: NumPy is asked for their types, and called at run time."""
