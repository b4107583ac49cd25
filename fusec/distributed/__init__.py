"""Functions over arrays in blocks (Dask's), on any of Dask's schedulers.

Nothing here is imported before a jitted function meets such an array.
"""
