"""Plans as C functions: LLVM text that does what the launcher does, and objects of it."""
