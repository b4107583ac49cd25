"""The public functions beside `jit`."""
