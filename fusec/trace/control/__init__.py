"""Branches and loops on data as nodes of the graph."""
