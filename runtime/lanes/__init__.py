"""Loops over lanes, on several threads."""
