"""Random NumPy programs, grown by running them, compared with what fusec makes of them."""
