"""What fusec does to its process while it works: recursion, collections, signals, deadlines."""
