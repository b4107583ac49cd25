"""Rules of ops that move, select, add up and transform elements."""
