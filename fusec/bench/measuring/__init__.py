"""How programs are measured, and when results are equal."""
