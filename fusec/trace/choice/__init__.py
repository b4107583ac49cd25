"""One of several values, as data decides."""
