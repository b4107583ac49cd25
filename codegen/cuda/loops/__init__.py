"""Branches and loops on a CUDA device: one block runs a structured program as one kernel."""
