"""Seeing: the log ladder, the launch history, dumps, pass reports and explanations."""
