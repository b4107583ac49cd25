"""CUDA C++ compiled for this machine's CPU, and its runtime there: the emulated device."""
