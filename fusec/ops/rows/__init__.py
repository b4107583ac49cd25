"""Rows of the registry: ops of arrays, a family a file."""
