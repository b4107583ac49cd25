"""The math functions, a family a file."""
