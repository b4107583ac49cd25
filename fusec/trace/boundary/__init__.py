"""Where a trace meets its call: arguments in, results out, and nothing else kept."""
