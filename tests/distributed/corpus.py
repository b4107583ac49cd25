"""The share of the corpus that blocks can compute: ``python -m tests.distributed.corpus``

A program of `tests.programs` is called with arrays of a length in common cut in three along it, for
one length and axis after the other, until a call is taken; its results are compared with those of
whole arrays.  Others are counted by the cause of their last refusal.
"""

from __future__ import annotations

import collections
import math
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import optree

import fusec
from tests.programs.corpus import Program, programs

SHORTEST = 6  # an axis of fewer elements is not cut

# By what a refusal says: the cause in the table.
CAUSES = (
    ("writing to", "writes to its arguments"),
    ("assigning", "assigns attributes or outer variables"),
    ("np.random", "draws from `np.random`, or prints"),
    ("only the run knows", "a size that only the run knows"),
    ("elements beyond a block", "reads further than a neighbouring block"),
    ("which data end and in which", "a loop that needs other blocks and that data end"),
    ("other blocks, which data end", "a loop that needs other blocks and that data end"),
    ("other blocks, of more", "a loop that needs other blocks, of too many iterations"),
    ("a branch that needs", "a branch that needs other blocks and may raise an error"),
    ("np.loop", "a loop that changes the shape of what it carries"),
    ("a slice with a step", "a slice with a step along the axis"),
    ("reshape", "a reshape that merges or divides the axis"),
    ("np.take", "a gather of other rows"),
    ("fft", "a Fourier transform along the axis"),
    ("linalg", "a decomposition or solution of `np.linalg`"),
    ("np.put", "a scatter to other rows"),
    ("a check of values", "a check of values in blocks"),
    ("x[...] =", "another function along the axis"),
)
NO_ARRAY = "no array argument with an axis to cut"


def cuts(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """The arguments with arrays in blocks along the axes of one length, longest first."""
    leaves, spec = optree.tree_flatten(arguments, none_is_leaf=True)
    arrays = [leaf for leaf in leaves if type(leaf) is np.ndarray]
    found = {(size, axis): None for axis in (0, 1) for size in sorted(
        {a.shape[axis] for a in arrays if a.ndim > axis}, reverse=True) if size >= SHORTEST}
    for size, axis in found:
        yield optree.tree_unflatten(spec, [
            da.from_array(leaf, chunks={axis: math.ceil(size / 3)})
            if type(leaf) is np.ndarray and leaf.ndim > axis and leaf.shape[axis] == size else leaf
            for leaf in leaves])


def cause_of(error: BaseException) -> str:
    """The row of the table that a refusal belongs to."""
    text = str(error).splitlines()[0]
    for words, cause in CAUSES:
        if words in text.lower() or words in text:
            return cause
    found = re.match(r"(np\.[\w.]+)", text)
    if found is not None and "blocks" in text:
        return "another function along the axis"
    return f"{type(error).__name__}: {text[:70]}"


def gap_of(ours: Any, whole: Any) -> float:
    """The largest difference of two results' numbers, of the largest number."""
    gap = 0.0
    for a, b in zip(optree.tree_leaves(ours), optree.tree_leaves(whole), strict=True):
        if isinstance(b, (np.ndarray, np.generic, int, float, complex)) and np.size(b):
            a, b = np.asarray(a), np.asarray(b)
            if a.shape != b.shape:
                return math.inf
            apart = np.abs(a.astype(complex) - b.astype(complex))
            scale = max(1.0, float(np.nanmax(np.abs(b.astype(complex)))))
            gap = max(gap, float(np.nanmax(apart)) / scale)
    return gap


def outcome(program: Program) -> tuple[str, float]:
    """The cause of a refusal and 0; or "" and how far results in blocks are from the others."""
    cause = NO_ARRAY
    function = fusec.jit(program.function)
    for arguments in cuts(program.inputs(program.small)):
        try:
            with dask.config.set(scheduler="sync"):
                (ours,) = dask.compute(function(*arguments))
        except Exception as error:  # whatever class: the table says which
            cause = cause_of(error)
            continue
        return "", gap_of(ours, fusec.jit(program.function)(*program.inputs(program.small)))
    return cause, 0.0


def main() -> int:
    warnings.simplefilter("ignore")
    split, wrong, causes = list[str](), list[str](), collections.Counter[str]()
    for program in programs():
        cause, gap = outcome(program)
        if cause:
            causes[cause] += 1
        elif gap > 1e-9:
            wrong.append(f"{program.name} differs by {gap:.2g}")
        else:
            split.append(program.name)
    count = len(split) + len(wrong) + causes.total()
    print(f"{len(split)} of {count} programs: {', '.join(split)}")
    for cause, count in causes.most_common():
        print(f"| {cause} | {count} |")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
