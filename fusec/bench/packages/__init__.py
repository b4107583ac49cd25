"""Functions of published NumPy packages, as they are, under ``fusec.jit``: what runs, how fast."""
