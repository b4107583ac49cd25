"""Passes of products of matrices, and of contractions, whose devices are not known yet."""
