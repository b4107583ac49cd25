"""Sizes: expressions, bounds, questions, and graphs at other sizes."""
