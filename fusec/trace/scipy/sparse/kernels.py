"""What is computed of the arrays that a sparse array consists of, in plain Python: converted as
programs are, so that loops are loops of the graph.

Sums begin with zero and go over the elements in the order in which they are stored, as those of
SciPy's sparsetools (csr.h, csc.h, coo.h) do; products are rounded before they are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.code_roles import CONVERTED
from fusec.core.process.modules_above import module_above

FUSEC_ROLE = CONVERTED


in_lanes: Any = module_above("gradients.lanes.vmap").vmap


def checked_indices(indices: Any, size: Any) -> Any:
    """The indices, which are checked: SciPy's would read beyond the array."""
    if np.any((indices < 0) | (indices >= size)):
        raise ValueError("a sparse array has an index that is out of range of its shape")
    return indices


def checked_starts(starts: Any, count: Any) -> Any:
    """Where rows start in the data, checked likewise."""
    if (starts[0] != 0) | (starts[-1] > count) | np.any(starts[1:] < starts[:-1]):
        raise ValueError("a sparse array has an indptr that does not begin with 0, decreases, or "
                         "counts more elements than there are")
    return starts


def checked_single(rows: Any, columns: Any, width: Any) -> None:
    """Raise where an element is stored twice."""
    places = np.sort(rows.astype(np.int64) * width + columns)
    if np.any(places[1:] == places[:-1]):
        raise ValueError("astype(bool) of a sparse array in which an element is stored twice: call "
                         "A.sum_duplicates() before")


def expanded(starts: Any, like: Any) -> Any:
    """The row of each element, in the place of ``like``."""
    rows = np.zeros(like.shape[0], like.dtype)
    for row in range(starts.shape[0] - 1):
        for k in range(starts[row], starts[row + 1]):
            rows[k] = row
    return rows


def sums_of_rows(starts: Any, terms: Any) -> Any:
    """The sum of the terms of each row; rows are lanes, which threads share."""
    return in_lanes(_sum_of_row, (0, 0, None))(starts[:-1], starts[1:], terms)


def products_of_rows(starts: Any, indices: Any, data: Any, vector: Any) -> Any:
    """The product of each row with a vector, in one go."""
    return in_lanes(_product_of_row, (0, 0, None, None, None))(
        starts[:-1], starts[1:], indices, data, vector)


def _sum_of_row(start: Any, stop: Any, terms: Any) -> Any:
    total = terms.dtype.type(0)
    for k in range(start, stop):
        total += terms[k]
    return total


def _product_of_row(start: Any, stop: Any, indices: Any, data: Any, vector: Any) -> Any:
    total = data.dtype.type(0)
    for k in range(start, stop):
        # Itself, but for passes: the product is rounded before it is added, as SciPy's is.
        total += np.maximum(data[k] * vector[indices[k]], -np.inf)
    return total


def sums_of_row_vectors(starts: Any, indices: Any, data: Any, dense: Any) -> Any:
    """The product of rows with a matrix."""
    return in_lanes(_row_of_product, (0, 0, None, None, None))(
        starts[:-1], starts[1:], indices, data, dense)


def _row_of_product(start: Any, stop: Any, indices: Any, data: Any, dense: Any) -> Any:
    total = np.zeros(dense.shape[1], data.dtype)
    for k in range(start, stop):
        total += data[k] * dense[indices[k]]
    return total


def scattered(shape: Any, places: Any, terms: Any) -> Any:
    """Zeros with the terms added at their places."""
    sums = np.zeros(shape, terms.dtype)
    np.add.at(sums, places, terms)
    return sums
