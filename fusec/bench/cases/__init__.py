"""What the suites call."""
