"""The CUDA back end: loop nests to CUDA C++, which a driver compiles and launches."""
