"""Loops over the elements that a Jacobian is by, in plain Python: converted as programs are, so
that they are loops of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.code_roles import CONVERTED

FUSEC_ROLE = CONVERTED


def rows(
    derivative: Callable[[Any], Sequence[Any]], like: Any, results: Sequence[Any]
) -> list[Any]:
    """``derivative`` of each unit vector of the shape of ``like``, along the first axis of an array
    for each of its results, of the shapes and dtypes of ``results``."""
    size = like.size
    found = [np.zeros((size, *np.shape(result)), result.dtype) for result in results]
    for i in range(size):
        unit = np.zeros(size, like.dtype)
        unit[i] = 1.0
        parts = derivative(unit.reshape(like.shape))
        for array, part in zip(found, parts, strict=True):
            array[i] = part
    return found
