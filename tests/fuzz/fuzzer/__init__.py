"""Random NumPy programs, grown by running them, compared with fusec's code for them."""
