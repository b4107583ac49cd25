"""Splitting a graph into stages: one graph a block and stage."""
