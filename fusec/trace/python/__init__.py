"""Python's builtins, its `math` and its iterators on traced values."""
