"""Rows of the registry: calls of libraries, of the program, of sub-graphs; checks."""
