"""Arguments that differ between repeats, so that no cache of results can pass for speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

MEMORY = 256 << 20
STEP = 2.0**-12

Inputs = Callable[[int], tuple[Any, ...]]


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with every array copied, its layout kept."""
    return mapped(_copy, args)


def mapped(change: Callable[[Any], Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with every leaf of their trees changed."""
    tree: Any = tuple(args)
    return tuple(optree.tree_map(change, tree))


def _copy(leaf: Any) -> Any:
    return leaf.copy(order="K") if isinstance(leaf, np.ndarray) else leaf


def perturbed(args: Sequence[Any], k: int) -> tuple[Any, ...]:
    """A copy with every float array scaled by ``1 + k * 2**-12``; integers only copied.

    The scaling keeps signs, zeros, NaN and the rough size, so it takes every program down the path
    of its original arguments.
    """
    def moved(leaf: Any) -> Any:
        fresh = _copy(leaf)
        if isinstance(fresh, np.ndarray) and fresh.dtype.kind in "fc" and fresh.flags.writeable:
            np.multiply(fresh, fresh.dtype.type(1.0 + k * STEP), out=fresh)
        return fresh
    return mapped(moved, args)


def varying(args: Sequence[Any]) -> Inputs:
    """Inputs made from one set of arguments by :func:`perturbed`."""
    return lambda k: perturbed(args, k)


def nbytes(args: Any) -> int:
    """Bytes of the arrays in a tree."""
    return sum(leaf.nbytes for leaf in optree.tree_leaves(args) if isinstance(leaf, np.ndarray))


def pool_size(args: Sequence[Any], requested: int) -> int:
    """How many sets of inputs to keep at once: at most ``requested`` and 256 MiB, at least two."""
    return max(2, min(requested, MEMORY // max(1, nbytes(tuple(args)))))
