"""The number of lanes of a vector."""

LANES = 16  # as many as fusec's own functions take at once: several registers, whose work overlaps
