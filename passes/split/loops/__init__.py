"""Branches and loops over arrays in blocks."""
