"""Graphs as text and JSON, written, read and compared."""
