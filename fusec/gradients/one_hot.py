"""Loops over the elements that a Jacobian is by, in plain Python: converted as programs are, so
that they are loops of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.core.code_roles import CONVERTED

FUSEC_ROLE = CONVERTED


def rows(
    derivative: Callable[[Any], Sequence[Any]], shape: tuple[int, ...], dtype: np.dtype,
    results: Sequence[tuple[tuple[int, ...], np.dtype]],
) -> list[Any]:
    """``derivative`` of each unit vector of this shape and dtype, along the first axis of an array
    for each of its results, of which ``results`` has the shapes and dtypes.

    Sizes and dtypes are given, for the values may be Python's numbers, which have neither.
    """
    size = math.prod(shape)
    found = [np.zeros((size, *shape_of), dtype_of) for shape_of, dtype_of in results]
    for i in range(size):
        unit = np.zeros(size, dtype)
        unit[i] = 1.0
        parts = derivative(unit.reshape(shape))
        for array, part in zip(found, parts, strict=True):
            array[i] = part
    return found


def on_diagonal(values: Any) -> Any:
    """The square matrix with these values on its diagonal."""
    size = values.shape[0]
    matrix = np.zeros((size, size), values.dtype)
    matrix[np.arange(size), np.arange(size)] = values
    return matrix
