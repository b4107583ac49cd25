"""Training that is watched, and how examples come to it."""
