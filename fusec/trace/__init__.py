"""Tracing: NumPy calls on traced arrays become graph nodes."""
