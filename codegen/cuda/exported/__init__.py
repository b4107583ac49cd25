"""Plans of exported functions as launches from C++: kernels, and the host's part of a call."""
