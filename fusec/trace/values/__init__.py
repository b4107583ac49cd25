"""Memory and values of one trace: arrays, storages, and the trace that holds them."""
