"""Objects of the user's: their own methods, and what else reads, copies or calls them."""
