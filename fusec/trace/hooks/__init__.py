"""What converted code calls while it is traced."""
