"""Operands: numbers and arrays as traced values, Python's numbers, and sizes."""
