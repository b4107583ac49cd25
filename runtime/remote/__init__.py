"""Devices of other processes: the part of a step that goes there, and the values that come back."""
