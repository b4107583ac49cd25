"""Graph to graph passes, one file each; pipeline.py is the one readable list."""
