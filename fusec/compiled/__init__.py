"""Traces and compiles functions, and keeps their traces and plans."""
