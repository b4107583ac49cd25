"""The devices that graphs run on: which there are, and what runs work on each."""
