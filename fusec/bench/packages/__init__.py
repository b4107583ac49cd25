"""Functions of published NumPy packages, under ``fusec.jit``: those that run, how fast."""
