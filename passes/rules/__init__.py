"""Rewrites of single nodes: the rules and their language, folding, decomposition."""
