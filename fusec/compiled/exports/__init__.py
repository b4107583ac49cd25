"""Functions that leave the process as libraries for C programs."""
