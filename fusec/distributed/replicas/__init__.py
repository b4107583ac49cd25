"""Data-parallel steps: replicas on workers, and the ring in which they add up what pieces give."""
