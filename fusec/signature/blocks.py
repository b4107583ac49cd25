"""Arrays in blocks (Dask's) and with labels (xarray's): whether a call may have any, asked without
importing anything."""

from __future__ import annotations

import sys
from typing import Any


def may_be_there() -> bool:
    """Whether somebody has loaded the library that such arrays are of."""
    return "dask.array" in sys.modules


def are_in_blocks(x: Any) -> bool:
    """Whether it is such an array."""
    return isinstance(x, sys.modules["dask.array"].Array)


def may_have_labels() -> bool:
    """Whether somebody has loaded the library of arrays with labels."""
    return hasattr(sys.modules.get("xarray"), "Dataset")


def are_labelled(x: Any) -> bool:
    """Whether it is an array with labels, or a set of these."""
    library: Any = sys.modules["xarray"]
    return isinstance(x, (library.DataArray, library.Dataset))
