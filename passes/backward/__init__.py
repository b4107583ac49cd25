"""Rewrites that make a backward pass cheaper."""
