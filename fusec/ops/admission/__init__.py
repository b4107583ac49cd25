"""The admission of graphs that are read in."""
