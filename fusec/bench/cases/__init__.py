"""The calls of the suites."""
