"""Central differences, in the precision of the program: the judges of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def differences(f: Callable[..., Any], args: tuple[Any, ...], number: int = 0) -> np.ndarray:
    """The gradient of ``f`` by a float array among its arguments, of which each call gets copies.

    Richardson's extrapolation of two central differences: an error of order h**4.
    """
    x = np.asarray(args[number], dtype=float)
    gradient = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        h = 1e-3 * max(1.0, abs(x[place]))
        coarse, fine = (_central(f, args, number, place, step) for step in (h, h / 2))
        gradient[place] = (4 * fine - coarse) / 3
    return gradient


def _central(
    f: Callable[..., Any], args: tuple[Any, ...], number: int, place: tuple[int, ...], h: float
) -> float:
    return (_moved(f, args, number, place, h) - _moved(f, args, number, place, -h)) / (2 * h)


def _moved(
    f: Callable[..., Any], args: tuple[Any, ...], number: int, place: tuple[int, ...], by: float
) -> float:
    copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    if isinstance(copies[number], np.ndarray):
        copies[number][place] += by
    else:
        copies[number] += by
    return float(f(*copies))
