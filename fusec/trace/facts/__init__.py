"""Facts without a trace: names in code, layouts, texts, and the behaviour of this NumPy."""
