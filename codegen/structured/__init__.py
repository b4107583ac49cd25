"""The structured IR: branches and loops of the graph as statements, for every back end."""
