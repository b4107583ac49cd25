"""What became of a function, as text: explanations, pass logs, launches, dumps."""
