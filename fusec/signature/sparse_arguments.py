"""Sparse arrays of SciPy's as arguments: the arrays that they consist of, as one pytree.

What a trace sees of them is a `SparseArray`.  SciPy is never imported here.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import optree

from fusec.errors import user_error
from fusec.trace.facts.trees import NAMESPACE
from fusec.trace.scipy.sparse.arrays import SparseArray
from fusec.trace.values.array import TracedArray

_FORMATS = ("csr", "csc", "coo")
_NOTHING = np.zeros((), np.int8)


def taken(x: Any, path: str) -> SparseArray:
    """The argument's arrays, without a copy.  Raises ``TypeError`` for other formats, ranks and
    dtypes, ``ValueError`` where the arrays disagree in length."""
    format = x.format
    if format not in _FORMATS or x.ndim != 2:
        raise user_error(
            TypeError, f"argument {path} is a sparse array of format {format} and rank {x.ndim}, "
            "and those of format csr, csc and coo and rank 2 are compiled", None,
            "pass A.tocsr()", values=[("shape", x.shape)])
    kind = "array" if type(x).__name__.endswith("array") else "matrix"
    first, second = (x.row, x.col) if format == "coo" else (x.indices, x.indptr)
    data = x.data
    if format != "coo":
        lines = x.shape[0 if format == "csr" else 1]
        if len(second) != lines + 1:
            raise _malformed(path, "indptr", len(second), lines + 1)
        count = int(second[-1])
        if len(data) < count or len(first) < count or count < 0:
            raise _malformed(path, "data", min(len(data), len(first)), count)
        data, first = data[:count], first[:count]  # behind them there may be room
    elif not len(data) == len(first) == len(second):
        raise _malformed(path, "row and col", min(len(first), len(second)), len(data))
    extent = np.ndarray(x.shape, np.int8, _NOTHING, 0, (0, 0))  # no memory of its own: quick
    extent.flags.writeable = False
    return SparseArray(format, kind, (data, first, second), extent)


def _malformed(path: str, what: str, given: int, needed: int) -> Exception:
    return user_error(
        ValueError, f"argument {path} is a malformed sparse array: {what} has another length than "
        "its shape and indptr say", None, "A.check_format() says more",
        values=[("elements", given), ("needed", needed)])


_PARTS = {"coo": ("data", "row", "col", "shape"), "csr": ("data", "indices", "indptr", "shape"),
          "csc": ("data", "indices", "indptr", "shape")}


def _parts(x: Any) -> Any:
    first, second, third = x.parts
    is_made = TracedArray in (type(first), type(second), type(third), type(x.extent))
    return (first, second, third, x.extent), (x.format, x.kind, is_made), _PARTS[x.format]


def _whole(of: Any, values: Any) -> Any:
    """One for a trace; of a result, which the trace made and whose arrays there are now, SciPy's.
    """
    (format, kind, is_made), (*parts, extent) = of, values
    if isinstance(extent, (np.ndarray, TracedArray)) and extent.ndim != 2:
        raise user_error(
            ValueError, "lanes of a sparse array, whose arrays are not one for each lane", None,
            "give None in in_axes (the same array in each lane), and return A.toarray()",
            values=[("shape", extent.shape)])
    made = SparseArray(format, kind, tuple(parts), extent)
    if is_made and all(type(value) is np.ndarray for value in values):
        return as_scipys(made)
    return made


_SPARSE: Any = SparseArray
optree.register_pytree_node(_SPARSE, _parts, _whole, namespace=NAMESPACE)


def as_scipys(x: SparseArray) -> Any:
    """The sparse array of SciPy's with these arrays."""
    data, first, second = x.parts
    make = getattr(sys.modules["scipy.sparse"], f"{x.format}_{x.kind}")
    given = (data, (first, second)) if x.format == "coo" else (data, first, second)
    return make(given, shape=x.extent.shape)
