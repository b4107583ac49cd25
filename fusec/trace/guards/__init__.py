"""What a trace took for constant, and how each call compares it."""
