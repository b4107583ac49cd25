"""What may stand in a graph that is read in."""
