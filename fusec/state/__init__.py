"""State that outlives calls: Variables, containers, checkpoints."""
