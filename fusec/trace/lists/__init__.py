"""Lists that loops of the graph append to and go over."""
