"""Reports about a function, as text: explanations, pass logs, launches, dumps."""
