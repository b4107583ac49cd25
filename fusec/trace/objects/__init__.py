"""Objects of the user's: their own methods, and library code that reads, copies or calls them."""
