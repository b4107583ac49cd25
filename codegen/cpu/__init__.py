"""The CPU back end: loop IR to LLVM IR to machine code."""
