"""State that outlives the call: attributes, variables of outer scopes, lists and dicts."""
