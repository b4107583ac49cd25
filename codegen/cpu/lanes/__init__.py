"""Loops over lanes in vectors: several lanes run the code of one together, each under a mask."""
