"""Scalar operations as LLVM IR."""
