"""Why programs are slower than NumPy, where that was found out; shown by the report."""

from __future__ import annotations

SLOWER: dict[str, str] = {
    "bootstrap_interval": "np.median of each resample is a call of NumPy from the loop, and most "
    "of the time",
    "brent": "40 us in all, about what a call with two native loops costs to set up",
    "conjugate_gradients": "its products with a matrix of 400 x 400 are BLAS in NumPy and "
    "open-coded in the loop",
    "convective_adjustment": "np.nonzero and selections are calls of Python in every iteration",
    "flood_fill": "its stack of 0.9 MB is zeroed, where NumPy's zeros are pages that are made when "
    "they are touched, and few are",
    "haar": "arrays halve at every level: unrolled, for Python knows the sixteen levels, and each "
    "level's kernels copy all of the array",
    "light_curve": "the table that np.bincount counts in has no bound known before the run, so "
    "its loop runs step by step from Python",
}
NOT_FOUND = "not looked into"
