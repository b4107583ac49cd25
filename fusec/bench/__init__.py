"""The benchmark harness and its programs."""
