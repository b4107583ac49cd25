"""Python's numbers in a trace: sizes, integers of 64 bits, indices."""
