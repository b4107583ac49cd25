"""Nodes of a sub-graph as statements, a file for each kind."""
