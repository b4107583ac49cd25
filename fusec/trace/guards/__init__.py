"""Guards: values that a trace took for constant, and how each call compares them."""
