"""Plans: what runs in which order, and where each value lives."""
