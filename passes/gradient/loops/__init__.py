"""Derivatives of loops, and how often these run."""
