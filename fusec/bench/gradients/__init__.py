"""Gradients against JAX and against the function's own time: ``bench --suite gradients``."""
