"""Passes of what runs on a GPU."""
