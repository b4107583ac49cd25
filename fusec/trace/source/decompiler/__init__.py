"""A decompiler: the syntax tree of a function from its bytecode, where there is no source."""
