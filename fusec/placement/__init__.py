"""On which device each node runs: names, scopes, estimates, and what comes of them."""
