"""A GPU: its driver, memory, streams and compiler."""
