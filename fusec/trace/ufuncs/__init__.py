"""Universal functions and operators on traced values."""
