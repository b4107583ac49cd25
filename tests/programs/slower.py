"""Why programs are slower than NumPy, where that was found out; shown by the report."""

from __future__ import annotations

SLOWER: dict[str, str] = {
    "bootstrap_interval": "np.median of each resample is a call of NumPy from the loop, and most "
    "of the time",
    "brent": "40 us in all, about what a call with two native loops costs to set up",
    "conjugate_gradients": "its products with a matrix of 400 x 400 are BLAS in NumPy and "
    "open-coded in the loop",
    "convective_adjustment": "np.nonzero and selections are calls of Python in every iteration",
    "crr_american_put": "arrays shrink in each of 1,000 steps, which no loop of the graph can "
    "carry: unrolled, each step a kernel and a branch",
    "flood_fill": "its stack of 0.9 MB is zeroed, where NumPy's zeros are pages that are made when "
    "they are touched, and few are",
    "haar": "arrays halve at every level: unrolled, several small kernels a level",
    "householder_least_squares": "slices shrink with every column: unrolled, with a branch, a "
    "BLAS call and two kernels a column, each a step from Python",
    "light_curve": "the table that np.bincount counts in has no bound known before the run, so "
    "its loop runs step by step from Python",
    "pagerank": "its loop takes arrays whose size only the run knows, so it runs step by step "
    "from Python",
}
NOT_FOUND = "not looked into"
