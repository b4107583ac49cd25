"""Traces and compiles functions, and keeps what came of it."""
