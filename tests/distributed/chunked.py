"""A function of arrays in blocks, compared with itself of whole arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import optree

import fusec


def compared(f: Callable[..., Any], *args: Any, chunks: Any, exact: Any = True) -> Any:
    """The lazy result, after it was computed and compared with the function of whole arrays.
    ``exact``: which results have the same bits; one that is not differs by the order of sums."""
    jitted = fusec.jit(f)
    cut = [a if c is None else da.from_array(a, chunks=c) for a, c in zip(
        args, chunks, strict=True)]
    lazy = jitted(*cut)
    with dask.config.set(scheduler="sync"):
        (got,) = dask.compute(lazy)
    leaves = [optree.tree_leaves(tree) for tree in (lazy, got, jitted(*args))]
    exacts = itertools.repeat(exact) if isinstance(exact, bool) else exact
    for array, ours, whole, is_exact in zip(*leaves, exacts, strict=False):
        assert np.asarray(ours).dtype == np.asarray(whole).dtype == array.dtype
        assert np.shape(ours) == np.shape(whole) == array.shape
        if is_exact:
            np.testing.assert_array_equal(ours, whole)
        else:
            np.testing.assert_allclose(ours, whole, rtol=1e-12, atol=1e-13)
    return lazy
