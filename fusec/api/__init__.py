"""What users call beside `jit`."""
