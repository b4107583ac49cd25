"""Functions in folders: saved by one process, loaded by others without their source."""
