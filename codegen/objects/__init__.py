"""Object code on disk: what LLVM emits, read, and laid out as shared objects and archives."""
