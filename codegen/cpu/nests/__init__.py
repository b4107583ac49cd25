"""Loop nests as LLVM IR."""
