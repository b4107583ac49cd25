"""Sub-graphs and loops of structured programs."""
