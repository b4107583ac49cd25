"""Branches and loops of a device as one kernel, whose blocks stay until the last iteration."""
