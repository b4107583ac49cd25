"""Effects of fusec on its process while it works: recursion, collections, signals, deadlines."""
