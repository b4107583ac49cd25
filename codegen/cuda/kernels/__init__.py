"""Loop nests as CUDA C++, a file for each mode."""
