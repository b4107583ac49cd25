"""One trace for all instances of a class."""
