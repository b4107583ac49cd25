"""Buffers, threads, plans: everything that happens when compiled code runs."""
