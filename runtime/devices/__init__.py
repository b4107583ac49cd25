"""The devices that graphs run on: which there are, and the threads that run work on each."""
