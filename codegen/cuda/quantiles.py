"""Medians and quantiles by CuPy, with NumPy's NaN: CuPy sorts NaN behind the other elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# The number of arguments between the array and ``axis``.
ARGUMENTS_BEFORE_AXIS: Mapping[str, int] = {"Median": 0, "Percentile": 1, "Quantile": 1}


def with_nan(function: Callable[..., Any], before_axis: int, cupy: Any) -> Callable[..., Any]:
    """The function, whose results are NaN where one is among the elements; raises ``ValueError``
    for more arguments by position than ``axis``, which NumPy then takes."""

    def call(a: Any, *args: Any, **named: Any) -> Any:
        if len(args) > before_axis + 1:
            raise ValueError("arguments behind axis are taken by name")
        result = function(a, *args, **named)
        if a.dtype.kind != "f":
            return result
        axis = args[before_axis] if len(args) > before_axis else named.get("axis")
        has_nan = cupy.any(cupy.isnan(a), axis=axis, keepdims=named.get("keepdims", False))
        return cupy.where(has_nan, np.nan, result)

    return call
