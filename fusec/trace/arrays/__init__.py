"""Arrays made, shaped, joined and their attributes, with NumPy's signatures."""
