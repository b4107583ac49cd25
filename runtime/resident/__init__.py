"""Calls whose arrays lie in a GPU's memory already."""
