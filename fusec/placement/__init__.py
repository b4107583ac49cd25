"""On which device each node runs: names, scopes, estimates, and their result."""
