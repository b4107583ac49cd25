"""Rules of elementwise functions."""
