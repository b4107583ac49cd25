"""What becomes cheaper in a backward pass."""
