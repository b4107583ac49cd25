"""Launches: argument blocks, the native launcher, threads."""
