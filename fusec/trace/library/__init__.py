"""Library calls: NumPy is asked what they give, and called at run time."""
