"""Other compilers, measured beside fusec."""
