"""CUDA C++ compiled for this machine's CPU, and what runs it there: the emulated device."""
