"""Rules of what moves, selects, adds up and transforms elements."""
