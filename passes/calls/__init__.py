"""Calls that share a body."""
